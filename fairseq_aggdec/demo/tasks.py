"""What the demo can do, one shipped model each."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DemoTask:
    """A shipped model and how it is shown."""

    name: str
    title: str
    source_language: str
    target_language: str
    source_dict: str
    """suffix of the source dictionary's file"""
    target_dict: str
    tokenizer: str
    """what fairseq-interactive is given as --tokenizer"""
    modes: tuple[str, ...]
    """of `benchmarking.modes.Mode`, in the order of the table"""
    shown: str
    """the mode whose blocks are shown"""
    drafter: str | None = None
    """the drafter's file beside `model.pt`"""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return Path(__file__).parent / self.name

    @property
    def files(self) -> list[str]:
        """What the folder must hold."""
        names = ["model.pt", f"dict.{self.source_dict}.txt", f"dict.{self.target_dict}.txt", "bpecodes"]
        return [*names, self.drafter] if self.drafter else names


TASKS = {
    "gec": DemoTask(
        name="gec",
        title="Grammar correction",
        source_language="en",
        target_language="en",
        source_dict="src",
        target_dict="tgt",
        tokenizer="as_written",
        modes=("beam5", "beam1", "greedy", "iad"),
        shown="iad",
    ),
    "mt": DemoTask(
        name="mt",
        title="English-German translation",
        source_language="en",
        target_language="de",
        source_dict="en",
        target_dict="de",
        tokenizer="moses",
        modes=("beam5", "beam1", "greedy", "gad", "gad++", "gad++:5:3"),
        shown="gad",
        drafter="drafter.pt",
    ),
}
