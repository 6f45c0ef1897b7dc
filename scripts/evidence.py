"""What `gpu_day.sh evidence` has measured so far: numbers in evidence.json, outputs and curves in evidence.tar.xz.

usage: python scripts/evidence.py FOLDER EXPERIMENT...      reads work/EXPERIMENT and FOLDER/EXPERIMENT_score.log
"""

import io
import json
import re
import sys
import tarfile
from pathlib import Path

NEEDLESS = {
    "implementation",
    "sentences",
    "rounds",
    "longest_draft",
    "compared_with",
    "speed_up_by_edit_ratio",
}
"""fields of a run that its record or its neighbours say"""
CURVE = {"num_updates", "train_wall", "wall"}, {"nll_loss", "ppl", "accepted"}
"""numbers that the record keeps of a training's log, as they were last: of training, and of validation"""


def timed(path: Path) -> dict:
    """A record of aggdec bench without what is needless, numbers with four digits."""
    record = json.loads(
        path.read_text(), parse_float=lambda digits: float(f"{float(digits):.4g}")
    )
    for run in record["runs"]:
        times = run["times"]
        for part in (run, times, run["counts"]):
            for name in NEEDLESS & part.keys():
                del part[name]
        if "speed_ups" in times:
            # of half a unit each; only those that some sentence has
            times["speed_ups"] = {
                f"{index / 2:g}": count
                for index, count in enumerate(times["speed_ups"])
                if count
            }
        if run["batch_size"] > 1:  # all sentences have the time of their batch
            del times["percentiles"]
    return record


def curve(log: Path) -> list[str]:
    """The lines of a training's log that have numbers."""
    return [
        line.partition("][INFO] - ")[2]
        for line in log.read_text().splitlines()
        if " num_updates " in line
    ]


def last_numbers(lines: list[str]) -> dict[str, float]:
    """The last of each number of `CURVE`."""
    found = {}
    for line in lines:
        numbers = re.findall(r"(\w+) (-?[\d.]+(?:e-?\d+)?)(?= \||$)", line)
        found |= {
            name: float(number)
            for name, number in numbers
            if name in CURVE["| valid on " in line]
        }
    return found


def outputs(generated: Path) -> list[str]:
    """The outputs in a file of fairseq-generate, in the order of the sentences."""
    lines = [
        line.split("\t")
        for line in generated.read_text().splitlines()
        if line.startswith("H-")
    ]
    return [text for _, _, text in sorted(lines, key=lambda line: int(line[0][2:]))]


def main(folder: Path, experiments: list[str]) -> None:
    record: dict = {
        "scores": {},
        "as with greedy": {},
        "trainings": {},
        "targets": {},
        "records": {},
    }
    texts: dict[str, list[str]] = {}
    for name in experiments:
        work = Path("work") / name
        for path in sorted(work.glob("bench/*.json")):
            found = timed(path)
            record |= {key: found.pop(key) for key in ("commit", "machine")}
            record["records"][f"{name}/{path.stem}"] = found
        for path in sorted(work.glob("**/train/hydra_train.log")):
            model = path.parents[1].relative_to("work")
            texts[f"{model}/curve.txt"] = curve(path)
            record["trainings"][str(model)] = last_numbers(texts[f"{model}/curve.txt"])
        # of drafters that did not learn from the verifier's output
        for path in work.glob("*/targets"):
            record["targets"][str(path.parent.relative_to("work"))] = (
                path.read_text().strip()
            )
        for path in sorted(work.glob("decode/*/*/generate-*.txt")):
            made = path.parent.relative_to("work")
            texts[f"{made}/output.txt"] = outputs(path)
            if (greedy := path.parents[1] / "greedy" / path.name).is_file():
                equal = sum(
                    ours == other
                    for ours, other in zip(outputs(path), outputs(greedy), strict=False)
                )
                record["as with greedy"][str(made)] = f"{equal} of {len(outputs(path))}"
        for path in folder.glob(f"{name}_score.log"):
            rows = [
                line
                for line in path.read_text().splitlines()
                if re.match(r"\w\S*( \(\d+\))? {2,}", line)
            ]
            record["scores"][name] = [re.sub(" {2,}", "  ", row) for row in rows]
        for path in work.glob("*.md"):
            texts[f"{name}/{path.name}"] = path.read_text().splitlines()
    # a line for each run
    text = re.sub(r'(\{"mode")', r"\n\1", json.dumps(record, separators=(",", ":")))
    (folder / "evidence.json").write_text(f"{text}\n")
    with tarfile.open(folder / "evidence.tar.xz", "w:xz") as archive:
        for name, lines in texts.items():
            content = "".join(f"{line}\n" for line in lines).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    for path in (folder / "evidence.json", folder / "evidence.tar.xz"):
        print(f"== {path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
