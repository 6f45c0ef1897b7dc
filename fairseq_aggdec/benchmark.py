"""Decoding modes side by side on the same sentences: times, outputs and counters.

One process, batch after batch, the modes interleaved in rounds so that a machine that slows down slows them all; the
first batches of each mode are run once before any clock starts.
"""

import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import BaseFairseqModel
from tqdm import tqdm

from fairseq_aggdec import module_times
from fairseq_aggdec.decoding.stats import DecodingTotals
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.evaluation.bleu import detokenised_bleu
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig, AggressiveTranslationTask

_WARM_UP_BATCHES = 3


@dataclass(frozen=True)
class Mode:
    """A way to decode: beam5 and beam1 are stock fairseq."""

    name: str
    decoding: str
    beam: int = 1
    top_beta: int | None = None
    """of gad++; None for the default"""
    tolerance: float | None = None
    """of gad++; None for the default"""

    @classmethod
    def parse(cls, name: str) -> "Mode":
        """The mode of a name: beamN, greedy, iad, nar, gad, gad++, or gad++:BETA:TOLERANCE.

        Raises:
            AggdecError: no such mode.
        """
        if name in ("greedy", "iad", "nar", "gad", "gad++"):
            return cls(name, name)
        kind, _, rest = name.partition(":")
        try:
            if name.startswith("beam"):
                return cls(name, "beam", int(name.removeprefix("beam")))
            if kind == "gad++":
                beta, tolerance = rest.split(":")
                return cls(name, kind, 1, int(beta), float(tolerance))
        except ValueError:
            pass
        raise AggdecError(
            f"unknown mode {name}: choose from beam5, beam1 (any beam), greedy, iad, nar, gad, gad++, "
            "gad++:BETA:TOLERANCE"
        )


@dataclass
class ModeResult:
    """What one mode did with all sentences."""

    mode: str
    rounds: list[float] = field(default_factory=list)
    """seconds for all batches, one entry a round"""
    latencies: list[list[float]] = field(default_factory=list)
    """seconds of each batch, one list a round"""
    outputs: dict[int, list[int]] = field(default_factory=dict)
    """output tokens by sentence number"""
    hypotheses: dict[int, dict[str, Any]] = field(default_factory=dict)
    """fairseq's hypotheses of the last round by sentence number"""
    bleu: float | None = None
    """of the outputs, where references were given"""

    @property
    def seconds(self) -> float:
        """Median of the rounds."""
        return median(self.rounds)

    @property
    def totals(self) -> DecodingTotals | None:
        """Counters of the last round; None for fairseq's own search."""
        totals = DecodingTotals()
        for hypothesis in self.hypotheses.values():
            if "stats" not in hypothesis:
                return None
            totals.add(hypothesis["stats"])
        return totals

    def identical_to(self, other: "ModeResult") -> int:
        """Number of sentences with the same tokens."""
        return sum(self.outputs[number] == tokens for number, tokens in other.outputs.items())


def load(
    path: str, data: str, source_lang: str | None = None, target_lang: str | None = None, **options: Any
) -> tuple[AggressiveTranslationTask, list[BaseFairseqModel]]:
    """A checkpoint (or several, joined by `:`) and the plugin's task for it.

    Args:
        path: as fairseq-generate's --path.
        data: folder with the dictionaries, and the binarised data where it is read.
        source_lang, target_lang: file suffixes; found in the folder where None.
        options: of the task (`drafter_path=...`).

    Raises:
        AggdecError: the folder or the checkpoint cannot be used.
    """
    if options.get("drafter_path"):  # not read by the default mode; `compare` sets the modes of its own
        options = {"decoding": "aggressive", **options}
    config = AggressiveTranslationConfig(data=data, source_lang=source_lang, target_lang=target_lang, **options)
    # these point into fairseq's whole configuration, which only its own command lines build
    config.train_subset, config.dataset_impl, config.required_seq_len_multiple = "train", None, 1
    task = AggressiveTranslationTask.setup_task(config)
    models, _ = checkpoint_utils.load_model_ensemble(path.split(":"), task=task)
    for model in models:
        model.prepare_for_inference_(Namespace(generation=Namespace()))  # fairseq-generate's defaults
    return task, models


def batches_of(task: AggressiveTranslationTask, sentences: Sequence[torch.Tensor], size: int) -> list[dict[str, Any]]:
    """Padded batches of binarised sentences (EOS included), in the given order."""
    dataset = task.build_dataset_for_inference(sentences, [len(sentence) for sentence in sentences])
    numbers = range(len(sentences))
    return [dataset.collater([dataset[i] for i in numbers[first : first + size]]) for first in numbers[::size]]


def compare(
    task: AggressiveTranslationTask,
    models: list[BaseFairseqModel],
    batches: Sequence[dict[str, Any]],
    modes: Sequence[str],
    rounds: int = 3,
    progress: bool = True,
    **generation: Any,
) -> list[ModeResult]:
    """Decode all batches with every mode, `rounds` times.

    Args:
        task: from `load`.
        models: from `load`, on their device.
        batches: from `batches_of` or fairseq's iterator.
        modes: names that `Mode.parse` knows.
        rounds: how often each mode runs through all batches.
        progress: show a bar, on a terminal.
        generation: fairseq's generation options (`lenpen=...`); the beam belongs to the mode.

    Returns:
        one result a mode, in the given order.
    """
    parsed = [Mode.parse(mode) for mode in modes]
    runs = [(ModeResult(mode.name), _generator(task, models, mode, generation)) for mode in parsed]
    for _, generator in runs:
        for batch in batches[:_WARM_UP_BATCHES]:
            task.inference_step(generator, models, batch)
    with tqdm(
        total=rounds * len(runs) * len(batches), unit="batch", disable=None if progress else True, leave=False
    ) as bar:
        for _ in range(rounds):
            for result, generator in runs:
                bar.set_description(result.mode)
                _one_round(task, models, batches, result, generator, bar)
    return [result for result, _ in runs]


def profile(
    task: AggressiveTranslationTask,
    models: list[BaseFairseqModel],
    batches: Sequence[dict[str, Any]],
    mode: str,
    **generation: Any,
) -> dict[str, float]:
    """Seconds by module of one round of a mode; the clocks themselves cost a little.

    Args:
        task: from `load`.
        models: from `load`, on their device.
        batches: as for `compare`.
        mode: one of this plugin's modes.
        generation: as for `compare`.
    """
    generator = _generator(task, models, Mode.parse(mode), generation)
    for batch in batches[:_WARM_UP_BATCHES]:
        task.inference_step(generator, models, batch)
    result = ModeResult(mode)
    with module_times.measured(module_times.device_wait(models)) as seconds:
        _one_round(task, models, batches, result, generator, tqdm(disable=True))
    return module_times.shares(seconds, result.seconds)


def _generator(task: AggressiveTranslationTask, models: list[BaseFairseqModel], mode: Mode, options: dict) -> Any:
    task.cfg.decoding = mode.decoding
    task.cfg.top_beta, task.cfg.tolerance = mode.top_beta, mode.tolerance
    return task.build_generator(models, Namespace(**options, beam=mode.beam))


def _one_round(
    task: AggressiveTranslationTask,
    models: list[BaseFairseqModel],
    batches: Sequence[dict[str, Any]],
    result: ModeResult,
    generator: Any,
    bar: Any,
) -> None:
    latencies = []
    wait = module_times.device_wait(models) or (lambda: None)
    for batch in batches:
        wait()
        began = time.perf_counter()
        hypotheses = task.inference_step(generator, models, batch)
        wait()
        latencies.append(time.perf_counter() - began)
        for number, (best, *_) in zip(batch["id"].tolist(), hypotheses, strict=True):
            result.outputs[number] = best["tokens"].tolist()
            result.hypotheses[number] = best
        bar.update()
    result.latencies.append(latencies)
    result.rounds.append(sum(latencies))


def score(
    task: AggressiveTranslationTask, results: Sequence[ModeResult], references: Sequence[str], language: str
) -> None:
    """Fill in every result's BLEU.

    Args:
        task: from `load`.
        results: from `compare`.
        references: running text, one a sentence of the subset.
        language: of the references, for the detokeniser.
    """
    for result in results:
        numbers = sorted(result.outputs)
        lines = [
            task.target_dictionary.string(torch.tensor(result.outputs[number]), bpe_symbol="subword_nmt")
            for number in numbers
        ]
        result.bleu = detokenised_bleu(lines, [[references[number] for number in numbers]], language)


def table(results: Sequence[ModeResult]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows: seconds and spread, speed-ups, counters, identity with `greedy`."""
    by_name = {result.mode: result for result in results}
    headers = ["mode", "seconds\n(median, range)"]
    baselines = [by_name[name] for name in ("beam5", "beam1", "greedy") if name in by_name]
    headers += [f"speed-up\nover {baseline.mode}" for baseline in baselines]
    headers += ["iterations\nper sentence", "mean accepted\ntokens", "identical\nto greedy"]
    has_bleu = any(result.bleu is not None for result in results)
    headers += ["BLEU"] * has_bleu
    rows = []
    for result in results:
        row = [result.mode, f"{result.seconds:.2f} ({min(result.rounds):.2f}-{max(result.rounds):.2f})"]
        row += [f"{baseline.seconds / result.seconds:.2f}x" for baseline in baselines]
        totals = result.totals
        row += ["", ""] if totals is None else [f"{totals.mean_iterations:.2f}", f"{totals.mean_accepted_tokens:.2f}"]
        greedy = by_name.get("greedy")
        row.append("" if greedy is None else f"{result.identical_to(greedy)} of {len(greedy.outputs)}")
        if has_bleu:
            row.append("" if result.bleu is None else f"{result.bleu:.2f}")
        rows.append(row)
    return headers, rows


def machine() -> str:
    """Processor, threads and library versions, for the head of a report."""
    import platform

    import fairseq

    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else name
    return (
        f"{name}, {torch.get_num_threads()} threads; Python {platform.python_version()}, torch {torch.__version__}, "
        f"fairseq {fairseq.__version__}"
    )
