"""The tasks of `aggdec demo`, with a shipped model for each."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DemoTask:
    """A shipped model and how it is shown."""

    name: str
    title: str
    source_language: str
    """also in the name of its dictionary, dict.LANGUAGE.txt"""
    target_language: str
    tokenizer: str
    """the value of fairseq-interactive's --tokenizer"""
    modes: tuple[str, ...]
    """names of `lab.benchmarking.modes.Mode`, in the order of the table"""
    shown: str
    """the mode whose blocks are shown"""
    drafter: str | None = None
    """the drafter's file beside `model.pt`"""

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(__file__).parent / self.name

    @property
    def files(self) -> list[str]:
        """The names of the files in the folder."""
        dictionaries = {f"dict.{language}.txt" for language in (self.source_language, self.target_language)}
        return ["model.pt", *sorted(dictionaries), "bpecodes", *filter(None, [self.drafter])]


TASKS = {
    "gec": DemoTask(
        name="gec",
        title="Grammar correction",
        source_language="en",
        target_language="en",
        tokenizer="as_written",
        modes=("beam5", "aggressive-beam:5", "beam1", "greedy", "iad"),
        shown="iad",
    ),
    "mt": DemoTask(
        name="mt",
        title="English-German translation",
        source_language="en",
        target_language="de",
        tokenizer="moses",
        modes=("beam5", "aggressive-beam:5", "beam1", "greedy", "gad", "gad++", "gad++:5:3"),
        shown="gad",
        drafter="drafter.pt",
    ),
}
