"""aggdec corrupt on files."""

import gzip
from pathlib import Path

import pytest
from experiments import ptb

from configs.gec_small.errors.corruption import EDITS
from fairseq_aggdec.cli.verbs import main as aggdec
from fairseq_aggdec.errors import AggdecError

LINES = [
    f"The {noun} {number} has always been very important, because people want to improve their lives."
    for number in range(40)
    for noun in ("teacher", "government", "company", "café", "student")
]


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "clean.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def pairs(prefix: Path) -> list[tuple[str, str]]:
    source, target = (
        Path(f"{prefix}.{side}").read_text(encoding="utf-8").split("\n")
        for side in ("src", "tgt")
    )
    assert source.pop() == target.pop() == ""
    return list(zip(source, target, strict=True))


def fails(arguments: list[str]) -> str:
    """The one line with which a run ends that cannot continue."""
    with pytest.raises(AggdecError) as caught:
        aggdec(["corrupt", *arguments, "--no-progress"])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_writes_aligned_pairs(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "train"
    aggdec(["corrupt", str(clean), str(out), "--seed", "7"])
    made = pairs(out)
    assert [target for _, target in made] == LINES
    assert 0.6 < sum(source != target for source, target in made) / len(made) < 0.95
    assert "200 pairs" in capsys.readouterr().out
    assert sorted(path.name for path in out.parent.iterdir()) == [
        "train.src",
        "train.tgt",
    ]


def test_tokens_are_made_of_both_sides_after_the_errors(
    clean: Path, tmp_path: Path
) -> None:
    for name, options in (("text", []), ("tokens", ["--tokens", "--workers", "2"])):
        aggdec(["corrupt", str(clean), str(tmp_path / name), "--no-progress", *options])
    assert pairs(tmp_path / "tokens") == [
        (ptb.tokenise(wrong), ptb.tokenise(right))
        for wrong, right in pairs(tmp_path / "text")
    ]
    assert all(
        " , because " in right and right.endswith("lives .")
        for _, right in pairs(tmp_path / "tokens")
    )


def test_workers_gzip_and_repetition_give_the_same_bytes(
    clean: Path, tmp_path: Path
) -> None:
    zipped = tmp_path / "clean.txt.gz"
    zipped.write_bytes(gzip.compress(clean.read_bytes()))
    aggdec(
        ["corrupt", str(clean), str(tmp_path / "one"), "--seed", "3", "--no-progress"]
    )
    aggdec(
        [
            "corrupt",
            str(zipped),
            str(tmp_path / "two"),
            "--seed",
            "3",
            "--no-progress",
            "--workers",
            "2",
        ]
    )
    aggdec(["corrupt", str(clean), str(tmp_path / "other"), "--seed", "4"])
    for side in ("src", "tgt"):
        assert (tmp_path / f"one.{side}").read_bytes() == (
            tmp_path / f"two.{side}"
        ).read_bytes()
    assert (tmp_path / "other.src").read_bytes() != (tmp_path / "one.src").read_bytes()


def test_a_list_of_words_and_weights_of_errors(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = tmp_path / "words.txt"
    words.write_text("the 900\nvery 30\nteacher\n")
    weights = ",".join(f"{name}={float(name == 'comma_deletion'):g}" for name in EDITS)
    options = ["--vocab", str(words), "--weights", weights, "--keep-clean", "0"]
    aggdec(["corrupt", str(clean), str(tmp_path / "out"), *options])
    assert {source for source, _ in pairs(tmp_path / "out")} <= {
        *LINES,
        *(line.replace(",", "") for line in LINES),
    }
    assert "comma_deletion 100.0%" in capsys.readouterr().out
    for count in ("much", "²"):
        words.write_text(f"the 900\nvery {count}\n", encoding="utf-8")
        message = fails([str(clean), str(tmp_path / "two"), "--vocab", str(words)])
        assert f"words.txt, line 2: '{count}' is not a count" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["out", "--weights", "spelling"],
            "--weights 'spelling': expected TYPE=WEIGHT",
        ),
        (["out", "--weights", "speling=1"], "--weights: unknown type 'speling'"),
        (
            ["folder/"],
            "OUT 'folder/': must end in a file name, for example folder/train",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_option(
    arguments: list[str],
    message: str,
    clean: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in fails([str(clean), *arguments])
    assert [path.name for path in tmp_path.iterdir()] == ["clean.txt"]


def test_what_cannot_be_read_leaves_nothing(clean: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    clean.write_bytes(clean.read_bytes() + b"caf\xe9\n")
    for lines in ("0", "1000"):  # with what is read for the vocabulary and without
        message = fails([str(clean), out, "--workers", "2", "--vocab-lines", lines])
        assert f"{clean}, line {len(LINES) + 1}: not valid UTF-8" in message
    assert "gone.txt: no such file" in fails([str(tmp_path / "gone.txt"), out])
    assert "is a directory" in fails([str(tmp_path), out])
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"A line.\n" * 5000)[:-20])
    assert "broken.gz" in fails([str(tmp_path / "broken.gz"), out])
    assert not list(tmp_path.glob("out*"))


def test_ended_between_its_two_files_it_leaves_no_pair_of_two_runs(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "train"
    aggdec(["corrupt", str(clean), str(out), "--seed", "1", "--no-progress"])
    replace = Path.replace
    done: list[Path] = []

    def only_once(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) > 1:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", only_once)
    with pytest.raises(SystemExit):
        aggdec(
            ["corrupt", str(clean), str(out), "--seed", "2", "--force", "--no-progress"]
        )
    assert len(done) == 2
    assert len(list(tmp_path.glob("train.*"))) == 1
