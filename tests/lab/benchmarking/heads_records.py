"""Records of models with proposal heads, without any measuring."""

from fairseq_aggdec.lab.benchmarking.record import Record, Run
from tests.lab.benchmarking.tiny import made_up_record, made_up_run


def heads_run(mode: str, seconds: float, tokens: list[int], iterations: list[int], bleu: float | None = None) -> Run:
    """A mode that decodes one sentence of each length."""
    counts = {"tokens": sum(tokens), "iterations": sum(iterations)}
    return made_up_run(mode, seconds, sentences=len(tokens), bleu=bleu, **counts)


def heads_record(*runs: Run) -> Record:
    return made_up_record(list(runs))
