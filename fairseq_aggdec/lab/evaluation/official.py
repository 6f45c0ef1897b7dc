"""Calls the official scorer of a metric, if the user has it, to show its number beside ours.

The name of the program tells which metric it computes:

- `m2scorer`, `m2scorer.py` (Dahlmeier and Ng): `m2`
- `gleu.py` of JFLEG (Napoles et al.): `gleu`
- `easse` (Alva-Manchego et al.): `sari`
- `multi-bleu.perl` of Moses (Koehn et al.): `bleu`
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairseq_aggdec.data.m2_file import write_m2
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.metrics import Settings
from fairseq_aggdec.lab.evaluation.reference_set import Lines, ReferenceSet

_NAMES = {"m2scorer": "m2", "gleu": "gleu", "easse": "sari", "multi-bleu": "bleu"}
_NUMBER = r"(\d+(?:\.\d+)?)"
_OUTPUTS = {
    "m2": (rf"Precision\s*:\s*{_NUMBER}.*?Recall\s*:\s*{_NUMBER}.*?F_[\d.]+\s*:\s*{_NUMBER}", 100),
    "gleu": (rf"\[\[?'{_NUMBER}'", 100),
    "sari": (rf"['\"]sari['\"]\s*:\s*{_NUMBER}", 1),
    "bleu": (rf"BLEU = {_NUMBER}", 1),
}
"""for each metric, the pattern of the numbers in the scorer's output, and the factor that turns them into percent"""


@dataclass(frozen=True)
class OfficialScorer:
    """An official program and the metric it computes."""

    metric: str
    command: tuple[str, ...]

    @classmethod
    def of(cls, command: str) -> OfficialScorer:
        """The scorer of a path or a command line, such as `python2 m2scorer/scripts/m2scorer.py`.

        A Python file that is not executable runs under this Python.

        Raises:
            AggdecError: the scorer is unknown.
        """
        words = shlex.split(command)
        name = Path(words[-1]).name if words else ""
        metric = next((metric for part, metric in _NAMES.items() if part in name.lower()), None)
        if metric is None:
            raise AggdecError(f"--official {command!r}: not a scorer known here; names hold {', '.join(_NAMES)}")
        if len(words) == 1 and name.endswith(".py") and not os.access(words[0], os.X_OK):
            words = [sys.executable, *words]
        return cls(metric, tuple(words))

    def score(self, test: ReferenceSet, outputs: Lines, settings: Settings) -> list[float]:
        """The official scores in percent, in the order of the metric's columns.

        Raises:
            AggdecError: the program cannot be started, fails, or prints something else.
        """
        with TemporaryDirectory(prefix="aggdec-score-") as folder:
            command = [*self.command, *self._arguments(test, outputs, settings, Path(folder))]
            given = "".join(" ".join(line) + "\n" for line in outputs) if self.metric == "bleu" else ""
            try:
                done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", input=given)
            except OSError as error:
                raise AggdecError(f"--official {self.command[0]}: {error.strerror}") from error
        pattern, factor = _OUTPUTS[self.metric]
        found = re.search(pattern, done.stdout, re.DOTALL)
        if done.returncode or not found:
            last = (done.stderr.strip() or done.stdout.strip() or "printed nothing").splitlines()[-1]
            raise AggdecError(
                f"--official {shlex.join(self.command)}: gave no {self.metric} score (exit code {done.returncode}): "
                f"{last}; try it by hand, perhaps with another Python before it: --official 'python2 .../m2scorer.py'"
            )
        return [factor * float(number) for number in found.groups()]

    def _arguments(self, test: ReferenceSet, outputs: Lines, settings: Settings, folder: Path) -> list[str]:
        system = _write(folder / "system", outputs)
        if self.metric == "m2":
            gold = test.m2_file
            if gold is None or gold.suffix == ".gz":
                gold = folder / "gold.m2"
                write_m2(gold, test.m2)
            options = ["--max_unchanged_words", str(settings.max_unchanged_words), "--beta", str(settings.beta)]
            return [*options, system, str(gold)]
        references = [_write(folder / f"reference{n}", part) for n, part in enumerate(test.references)]
        if self.metric == "bleu":
            return [
                str(folder / "reference")
            ]  # the common beginning of the file names; the output is its standard input
        source = _write(folder / "source", test.sources)
        if self.metric == "gleu":
            return ["-r", *references, "-s", source, "--hyp", system]
        return ["evaluate", "-t", "custom", "-m", "sari", "--orig_sents_path", source,
                "--refs_sents_paths", ",".join(references), "--sys_sents_path", system]  # fmt: skip


def _write(path: Path, lines: Sequence[Sequence[str]]) -> str:
    path.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)
