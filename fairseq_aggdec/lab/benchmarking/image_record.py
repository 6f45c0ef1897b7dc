"""The record of an image-decoding run: times and counters as for text, and the quality of each image."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import written_whole
from fairseq_aggdec.lab.benchmarking.record import Record, load_record
from fairseq_aggdec.lab.evaluation.image_quality import psnr
from fairseq_aggdec.lab.grid import text_table
from fairseq_aggdec.structured_files import made_of, read_json

BASELINE, EXACT, APPROXIMATE = "greedy", "blockwise", "approximate"
"""names of the modes"""
RECORD, QUALITY = "record.json", "quality.json"
"""names of the files; the first has the format of aggdec bench --json, which aggdec report reads"""


@dataclass
class Quality:
    """Quality of the images that one mode decoded; each list has one entry for each image."""

    squared_errors: list[float]
    """mean squared difference of intensities (0 to 255) from the original"""
    identical: list[float]
    """share of pixels that are the same as with greedy decoding"""

    @property
    def psnr(self) -> float:
        """Peak signal-to-noise ratio in dB, mean over images."""
        return psnr(self.squared_errors)

    @property
    def identical_share(self) -> float:
        return sum(self.identical) / len(self.identical)


@dataclass
class ImageRecord:
    """Record of one model at one block size."""

    record: Record
    distance: float
    """ε of `APPROXIMATE`, in intensities"""
    enlarged: list[float]
    """squared errors of the small images after bicubic enlargement"""
    quality: dict[str, Quality]
    """quality by mode"""

    def save(self, folder: Path) -> None:
        """Write `RECORD`, then `QUALITY`, so that a folder with `QUALITY` is complete."""
        content = {
            "distance": self.distance,
            "enlarged": self.enlarged,
            "quality": {mode: asdict(quality) for mode, quality in self.quality.items()},
        }
        self.record.save(folder / RECORD)
        with written_whole(folder / QUALITY) as partial:
            partial.write_text(json.dumps(content) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> ImageRecord:
        """Read what `save` wrote.

        Raises:
            AggdecError: the files have another format, are damaged, or lack a mode.
        """
        record, path = load_record(folder / RECORD), folder / QUALITY
        content = read_json(path, "run aggdec super-resolve again")
        if isinstance(content, dict):
            content["record"] = record
        made: ImageRecord = made_of(cls, content, str(path), "run aggdec super-resolve again")
        if not {BASELINE, EXACT, APPROXIMATE} <= made.quality.keys() & {run.mode for run in record.runs}:
            raise AggdecError(f"{folder}: lacks a mode; run aggdec super-resolve again")
        return made

    def table(self) -> str:
        """The results as a Markdown table, one row for each mode."""
        names = {BASELINE: "greedy", EXACT: "blockwise, exact", APPROXIMATE: f"blockwise, ε = {self.distance:g}"}
        runs = {run.mode: run for run in self.record.runs}
        rows = [["bicubic", "", "", "", "", f"{psnr(self.enlarged):.2f}", ""]]
        for mode, name in names.items():
            run, quality = runs[mode], self.quality[mode]
            rows.append(
                [
                    name,
                    f"{run.mean_iterations:.1f}",
                    f"{run.mean_accepted_block or 0.0:.2f}",
                    f"{1000 * run.seconds / len(run.tokens):.0f}",
                    f"{runs[BASELINE].seconds / run.seconds:.2f}x",
                    f"{quality.psnr:.2f}",
                    f"{quality.identical_share:.1%}",
                ]
            )
        head = [
            "decoding",
            "iterations",
            "mean accepted block",
            "ms an image",
            "speed-up",
            "PSNR, dB",
            "greedy's pixels",
        ]
        return text_table(head, rows)
