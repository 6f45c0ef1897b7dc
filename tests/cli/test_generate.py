"""fairseq-generate: the plugin's output against stock `--beam 1`.

By models that have learned, with a drafter and heads that were trained for them: otherwise this would say little.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fairseq_aggdec.lab.trace import read_traces
from tests.cli.correction import (
    BLOCK_SIZE,
    EARLIER,
    HEADS,
    PLUGIN,
    SENTENCES,
    WITHOUT_LONG,
    Process,
    assert_same_hypotheses,
    generate,
    generate_here,
    summaries,
)
from tests.support.helpers import ToyModel, parse_generate, run_cli


class Models(NamedTuple):
    """All that decode the test set."""

    verifier: ToyModel
    drafter: Path
    heads: Path
    small: Path
    """an earlier state of the verifier, and as large: --drafts auto would find that drafts do not pay"""

    def options(self, words: str) -> list[str]:
        """A command line, with files in place of their names."""
        files = {"DRAFTER": self.drafter, "HEADS": self.heads, "SMALL": self.small}
        return [str(files.get(word, word)) for word in words.split()]


@pytest.fixture
def models(correction_model: ToyModel, correction_drafter: Path, heads: Path) -> Models:
    [small] = correction_model.checkpoint.parent.glob(EARLIER)
    return Models(correction_model, correction_drafter, heads, small)


def test_beam_and_the_task_translation_print_what_stock_fairseq_prints_to_the_last_digit(
    tmp_path: Path,
) -> None:
    """By a shipped model, which fairseq can read without this plugin, too."""
    model = PLUGIN / "demo" / "mt"
    sentences = (model / "sentences.txt").read_text("utf-8").splitlines()[:4]
    (tmp_path / "input").write_text("".join(line + "\n" for line in sentences), "utf-8")
    command = (
        f"{model} -s en -t de --path {model}/model.pt --cpu --input {tmp_path}/input"
    )
    command += " --beam 3 --nbest 2 --buffer-size 4"
    plugin = f"--user-dir {PLUGIN}"
    beam = f"{plugin} --task aggressive_translation --decoding beam"
    runs = [
        run_cli("fairseq-interactive", *f"{command} {ours}".split(), own_process=True)
        for ours in ("", plugin, beam)
    ]
    stock, translation, searched = (
        re.findall(r"^[SHDP]-.*$", run.stdout, re.MULTILINE) for run in runs
    )
    assert len(stock) == len(sentences) * (1 + 2 * 3)
    assert stock == translation == searched


def test_iad_gives_the_hypotheses_of_beam_one_and_its_statistics_fit_them(
    correction_model: ToyModel, beam_one: Process, tmp_path: Path
) -> None:
    """By a model that corrects and copies: most drafts are accepted, and some sentences take one iteration."""
    stats = tmp_path / "stats.jsonl"
    # of an earlier run, and replaced
    stats.write_text('{"id": 999}\n', "utf-8")
    options = f"--print-step --retain-iter-history --decoding-stats {stats} --batch-size 1 --drafts whole"
    process = generate(correction_model, "iad", *options.split())
    assert_same_hypotheses(process.stdout, beam_one.stdout)
    assert (process.stdout + process.stderr).count("--beam is set to 1") == 1
    assert "Generate test with beam=1: BLEU" in process.stdout
    records = {
        record["id"]: record
        for record in map(json.loads, stats.read_text("utf-8").splitlines())
    }
    traces = {trace.number: trace for trace in read_traces(stats)}
    sentences = parse_generate(process.stdout)
    assert records.keys() == traces.keys() == sentences.keys()
    assert sum(sentence.steps == 1 for sentence in sentences.values()) >= 3
    for number, sentence in sentences.items():
        record = records[number]
        source = sentence.source.split()
        assert sentence.history[0].split() == source, "the first draft is the source"
        assert (traces[number].source, traces[number].output) == (
            source,
            [*sentence.tokens, "</s>"],
        )
        assert (record["source_length"], record["output_length"]) == (
            len(source),
            len(sentence.tokens),
        )
        steps = (
            sentence.steps,
            len(sentence.history),
            len(record["accepted_per_iteration"]),
        )
        assert steps == (record["iterations"],) * 3
        assert (
            record["accepted"]
            == sum(record["accepted_per_iteration"])
            <= record["drafted"]
        )
        # every iteration adds one token of the verifier's own, unless an accepted EOS ends the sentence
        own = len(sentence.tokens) + 1 - record["accepted"]
        assert own in (record["iterations"], record["iterations"] - 1)
        assert (record["edit_ratio"] == 0) == (source == sentence.tokens)
    [summary] = summaries(process.stdout + process.stderr)
    assert summary["sentences"] == SENTENCES
    assert summary["mean_accepted"] > 1.5
    accepted, drafted = (
        sum(record[name] for record in records.values())
        for name in ("accepted", "drafted")
    )
    assert summary["acceptance_rate"] == pytest.approx(
        100 * accepted / drafted, abs=0.1
    )


@pytest.mark.parametrize(
    "decoding, options, longest, accepted",
    [
        ("gad", "--drafter-path DRAFTER --drafts whole", BLOCK_SIZE, 1.3),
        ("speculative", "--drafter-path SMALL --drafts whole", 4, 1.3),
        ("blockwise", "--path HEADS", HEADS - 1, 1.0),
    ],
)
def test_a_drafter_gives_the_hypotheses_of_beam_one_and_its_drafts_are_told(
    models: Models,
    beam_one: Process,
    decoding: str,
    options: str,
    longest: int,
    accepted: float,
) -> None:
    """`--decoding aggressive` sees what drafts there are."""
    told = ["--print-step", "--retain-iter-history", "--batch-size", 1]
    run = generate(models.verifier, "aggressive", *told, *models.options(options))
    assert_same_hypotheses(run.stdout, beam_one.stdout)
    log = run.stdout + run.stderr
    [summary] = summaries(log)
    assert f"--decoding {decoding}: " in log
    assert summary["sentences"] == SENTENCES
    assert summary["mean_accepted"] > accepted
    for sentence in parse_generate(run.stdout).values():
        drafts = [draft.split() for draft in sentence.history]
        assert sentence.steps == len(drafts)
        assert max(map(len, drafts)) <= longest
    if decoding == "speculative":
        assert "drafts of at most 4 tokens by a model" in log
        assert re.search(
            r"--drafter-path \S+: 0\.\d million weights; of the verifier 0\.\d", log
        )


@pytest.mark.parametrize(
    "decoding, options",
    [
        ("gad++", "--drafter-path DRAFTER --top-beta 1 --tolerance 9"),
        (None, "--path HEADS"),  # to stock fairseq an ordinary Transformer
    ],
)
def test_what_equals_it(
    models: Models, beam_one: Process, decoding: str | None, options: str
) -> None:
    assert_same_hypotheses(
        generate_here(models.verifier, decoding, *models.options(options)),
        beam_one.stdout,
    )


def test_the_drafter_alone(models: Models) -> None:
    """As --path, or beside a verifier that is not asked."""
    alone = generate_here(
        models.verifier, "nar", "--print-step", "--path", models.drafter
    )
    beside = generate_here(models.verifier, "nar", "--drafter-path", models.drafter)
    assert_same_hypotheses(beside, alone)
    for sentence in parse_generate(alone).values():
        assert sentence.steps == -(-(len(sentence.tokens) + 1) // BLOCK_SIZE)


def test_search_options_and_an_ensemble(models: Models) -> None:
    ensemble = ["--path", f"{models.small}:{models.verifier.checkpoint}", *WITHOUT_LONG]
    lengths = "--min-len 3 --max-len-a 0.5 --max-len-b 4 --lenpen 0.4"
    options = f"{lengths} --prefix-size 2 --unkpen 2 --temperature 1.3 --no-repeat-ngram-size 2".split()
    stock = generate_here(models.verifier, None, *options, *ensemble)
    for mode in (
        "iad",
        "gad --drafter-path DRAFTER",
        "speculative --drafter-path SMALL --drafts whole",
    ):
        found = generate_here(
            models.verifier, *models.options(mode), *options, *ensemble
        )
        assert_same_hypotheses(found, stock, tolerance=5e-3)
