"""What takes too long for the tests: fifty thousand sentences, and processes killed at random points.

    python -m tests.long_runs WORK [--sentences N] [--kills N]

Each part leaves its figures as WORK/PART.json and is not run again; at the end a report in Markdown is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairseq_aggdec.files import written_whole
from tests.helpers import ToyModel, make_toy_data, parse_generate, run_cli, train_toy

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ["--max-len-a", 1, "--max-len-b", 5]
SAMPLES = 20
"""so many times a run's memory is read"""


def words(model: ToyModel) -> list[str]:
    """Those of the dictionary."""
    return [line.split(" ")[0] for line in (model.data / "dict.src.txt").read_text(encoding="utf-8").splitlines()]


def make_model(work: Path, sentences: int) -> ToyModel:
    """A toy model, and the split `many` of so many sentences of random words, also as `work/many.src`."""
    folder = work / "toy"
    model = ToyModel(folder / "bin", folder / "model/checkpoint_last.pt")
    if not (model.data / "test.src-tgt.src.bin").exists() or not model.checkpoint.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        model = train_toy(make_toy_data(folder), folder / "model")
    if (work / f"many-{sentences}").exists():
        return model
    rng, known = random.Random(3), words(model)
    lines = [" ".join(rng.choices(known, k=rng.randint(1, 12))) for _ in range(sentences)]
    for side in ("src", "tgt"):
        (work / f"many.{side}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    dictionary = ["--srcdict", model.data / "dict.src.txt", "--joined-dictionary"]
    shutil.rmtree(work / "many", ignore_errors=True)
    options = ["-s", "src", "-t", "tgt", "--testpref", work / "many", "--destdir", work / "many"]
    run_cli("fairseq-preprocess", *options, *dictionary)
    (work / f"many-{sentences}").touch()
    return model


def command(kind: str, work: Path, model: ToyModel, stats: Path) -> list[str]:
    """fairseq-generate, or fairseq-interactive with the buffer that `interactive-N` says, over all the sentences."""
    name, _, buffer = kind.partition("-")
    options: list[Any] = ["--user-dir", ROOT / "fairseq_aggdec", "--task", "aggressive_translation", "--cpu"]
    options += ["--decoding", "iad", "--path", model.checkpoint, "--decoding-stats", stats, *LIMITS]
    if name == "interactive":
        size = min(50, int(buffer))
        options += [
            "-s",
            "src",
            "-t",
            "tgt",
            "--buffer-size",
            buffer,
            "--batch-size",
            size,
            "--input",
            work / "many.src",
        ]
    else:
        options += ["--batch-size", 50, "--no-progress-bar"]
    program = Path(sysconfig.get_path("scripts")) / f"fairseq-{name}"
    return [*map(str, [program, work / "many", *options])]


def start(line: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
    """A process whose standard output is a file; its errors go to a file beside it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with output.open("wb") as out, output.with_suffix(".err").open("wb") as errors:
        return subprocess.Popen(line, stdout=out, stderr=errors, env=environment)


def anonymous_memory(process: subprocess.Popen[bytes]) -> float:
    """MiB that belong to the process alone: without the data and the libraries that it reads."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise ValueError("the process has ended")


def long_run(kind: str, work: Path, model: ToyModel, sentences: int) -> dict[str, Any]:
    """All sentences: memory as it goes, and whether each has its answer, in order."""
    stats, output = work / f"{kind}.jsonl", work / f"{kind}.txt"
    stats.unlink(missing_ok=True)
    process = start(command(kind, work, model, stats), output)
    memory: dict[int, float] = {}
    done, position, began = 0, 0, time.monotonic()
    while process.poll() is None:
        if stats.exists():
            with stats.open("rb") as file:
                file.seek(position)
                new = file.read()
            done, position = done + new.count(b"\n"), position + len(new)
            if done < sentences and done // (sentences // SAMPLES) > len(memory):
                memory[done] = round(anonymous_memory(process), 1)
        time.sleep(0.2)
    assert process.returncode == 0, output.with_suffix(".err").read_text()[-3000:]
    text = output.read_text(encoding="utf-8")
    numbers = [int(line[2:].split("\t")[0]) for line in text.split("\n") if line.startswith("H-")]
    lines = (work / "many.src").read_text(encoding="utf-8").split("\n")[:-1]
    answers = parse_generate(text)
    return {
        "sentences": len(numbers),
        "in_order": numbers == list(range(sentences)),
        "each_once": sorted(numbers) == list(range(sentences)),
        "sources_kept": all(answers[number].source == line for number, line in enumerate(lines)),
        "statistics_each_once": sorted(ids(stats)) == list(range(sentences)),
        "memory": memory,
        "seconds": round(time.monotonic() - began),
    }


def ids(stats: Path) -> list[int]:
    """Of the records in a file of --decoding-stats, every one of which must be whole."""
    text = stats.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line)["id"] for line in text.split("\n")[:-1]]


def whole(text: str) -> bool:
    """Whether the last line is one, and each sentence but the last has all of its lines."""
    answers = parse_generate(text)
    return text.endswith("\n") and all(answers[number].positional for number in list(answers)[:-1])


def ended(work: Path, model: ToyModel, kills: int) -> dict[str, Any]:
    """fairseq-generate and fairseq-interactive ended by SIGKILL and by SIGINT (Ctrl-C) at random points."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs behind `&` would hand on "ignored"
    rng = random.Random(7)
    found = []
    for kill in range(kills):
        kind = ("interactive-1", "interactive-50", "generate")[kill % 3]
        number = (signal.SIGKILL, signal.SIGINT)[kill // 3 % 2]
        stats, output = work / "ended.jsonl", work / "ended.txt"
        stats.unlink(missing_ok=True)
        process = start(command(kind, work, model, stats), output)
        wait_for(lambda: stats.exists() and stats.stat().st_size > 0)  # noqa: B023 (called at once)
        time.sleep(2 * rng.random())
        process.send_signal(number)
        process.wait()
        text = output.read_text(encoding="utf-8")
        found.append([kind, number.name, len(ids(stats)), not text or whole(text)])
    return {"runs": found}


def wait_for(happened: Callable[[], bool], seconds: float = 300) -> None:
    """Until it is true."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


PARTS = ("interactive-1", "interactive-500", "generate", "ended")


def report(results: dict[str, dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| run | sentences | in order | statistics | MiB after 5 % | 25 % | 50 % | 95 % of the sentences |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, result in results.items():
        if "memory" in result:
            memory = list(result["memory"].values())
            at = [memory[int(share * len(memory))] for share in (0, 0.25, 0.5)] + [memory[-1]]
            order = "yes" if result["in_order"] else "by length, each once" if result["each_once"] else "NO"
            order += "" if result["sources_kept"] else ", SOURCES DIFFER"
            records = "each once" if result["statistics_each_once"] else "NOT each once"
            figures = " | ".join(f"{value:.1f}" for value in at)
            lines.append(f"| {kind} | {result['sentences']:,} | {order} | {records} | {figures} |")
        else:
            runs = result["runs"]
            kinds = sorted({(kind, name) for kind, name, *_ in runs})
            lines += [
                "",
                "| ended by | runs | sentences done | whole lines in results and statistics |",
                "|---|---|---|---|",
            ]
            for each in kinds:
                mine = [run for run in runs if tuple(run[:2]) == each]
                counts = [run[2] for run in mine]
                good = sum(run[3] for run in mine)
                lines.append(
                    f"| {each[1]}, {each[0]} | {len(mine)} | {min(counts)} to {max(counts)} | {good} of {len(mine)} |"
                )
    return "\n".join(lines)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="scripts/long_runs.sh")
    parser.add_argument("work", type=Path)
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    model: ToyModel | None = None
    for part in args.parts:
        path = args.work / f"{part}.json"
        if not path.exists():
            print(f"== {part}", file=sys.stderr)
            model = model or make_model(args.work, args.sentences)
            result = (
                ended(args.work, model, args.kills)
                if part == "ended"
                else long_run(part, args.work, model, args.sentences)
            )
            with written_whole(path) as partial:
                partial.write_text(json.dumps(result), encoding="utf-8")
        results[part] = json.loads(path.read_text(encoding="utf-8"))
    print(report(results))


if __name__ == "__main__":
    main()
