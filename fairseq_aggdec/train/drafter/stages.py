"""`aggdec drafter`: plan, distil, train, average, measure; what an earlier run has done is not done again."""

from __future__ import annotations

import fnmatch
import hashlib
import math
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.bulk.data_bin import DataBin, write_sample
from fairseq_aggdec.bulk.running import Workers, device_of_environment
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.compat.training import is_bfloat16_fast
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import alone_at, file_sha256
from fairseq_aggdec.generation.modes import GAD, GREEDY
from fairseq_aggdec.train.averaging import last_checkpoints, write_average
from fairseq_aggdec.train.distilling import distil
from fairseq_aggdec.train.draft_length import keep_draft_length
from fairseq_aggdec.train.drafter import plan as planning
from fairseq_aggdec.train.drafter.fairseq_train import train
from fairseq_aggdec.train.drafter.folder import DRAFTER, Record, Settings
from fairseq_aggdec.train.drafter.plan import ROUNDS, Measured, Plan, teacher_of
from fairseq_aggdec.train.drafter.recipe import AVERAGED, Recipe

Measure = Callable[[DataBin, Path, Path, str, int, Sequence[int], float], tuple[float, list[Measured]]]
"""`lab.bench.drafter_speed.drafter_speed`, which the command hands in: training knows no laboratory"""

_LAST = "checkpoint_last.pt"
"""fairseq's name of a training's last checkpoint"""
_SHARD, _LATE, _LEAST = 100, 1.5, 0.05
"""sentences that are distilled at a time; how many times its planned minutes the distillation may take; minutes that
are trained although all are over"""
_TRIED = 8
"""sentences that the trial's drafter is measured with"""
_SHARES = (0.4, 0.6, 0.8, 1.0)
"""the block sizes that are tried, as shares of the one that the drafter is trained with"""


def make_drafter(args: Any, measure: Measure) -> None:
    """Run `aggdec drafter` with its parsed options.

    Args:
        args: the options, and `begun`, when the command began on the clock of `time.monotonic`.
        measure: see `Measure`.

    Raises:
        AggdecError: a file or an option cannot be used, the training failed, or a lossless mode was not lossless.
    """
    # absolute: a name may begin with a dash, and the command that is printed in the end works in every folder
    out, verifier = args.out.absolute(), args.verifier.absolute()
    if out.exists() and not out.is_dir():
        raise AggdecError(f"--out {out}: is a file; name a folder")
    data = DataBin.find(args.data.absolute(), args.source_lang, args.target_lang)
    weights = _verifiers_weights(verifier, data)
    fingerprints = [value for split in ("train", "valid") for value in _fingerprint(data, split).values()]
    sha256 = hashlib.sha256("".join(fingerprints).encode()).hexdigest()
    length, shape = (args.minutes, args.updates), (args.decoder_layers, args.block_size)
    settings = Settings(file_sha256(verifier), sha256, *length, *shape)
    device = device_of_environment(args.cpu)
    layers = len(fnmatch.filter(weights, "decoder.layers.*.fc1.weight"))
    if layers < args.decoder_layers:
        print(
            f"--decoder-layers {args.decoder_layers}: the drafter gets {layers}, all the verifier has", file=sys.stderr
        )
    out.mkdir(parents=True, exist_ok=True)
    with alone_at(out):
        record = Record.open(out, settings)
        width = weights["decoder.layers.0.fc1.weight"].size(1)
        recipe = Recipe(verifier, width, min(args.decoder_layers, layers), args.block_size, cpu=device.type == "cpu")
        end = args.begun + 60 * (args.minutes or math.inf)
        _Stages(out, data, record, recipe, device, end, measure).run()


def _fingerprint(data: DataBin, split: str) -> dict[str, str]:
    if not Path(f"{data.prefix(split, data.source_lang)}.idx").is_file():
        raise AggdecError(f"--data {data.folder}: has no split {split} of {data.pair}")
    return data.fingerprint(split)


def _verifiers_weights(path: Path, data: DataBin) -> dict[str, torch.Tensor]:
    """The weights of a model that can have a drafter, as far as its checkpoint shows.

    Raises:
        AggdecError: it is a drafter, no Transformer encoder-decoder, or has other dictionaries than the data.
    """
    weights: dict[str, torch.Tensor] = read_checkpoint(path)["model"]
    if "decoder.mask_embedding" in weights:
        raise AggdecError(f"--verifier {path}: is a block drafter; name the model that it is to draft for")
    if not {"decoder.layers.0.fc1.weight", "encoder.layers.0.fc1.weight"} <= weights.keys():
        raise AggdecError(f"--verifier {path}: no Transformer encoder-decoder of fairseq")
    for side, dictionary in (("encoder", data.source_dictionary), ("decoder", data.target_dictionary)):
        symbols = weights[f"{side}.embed_tokens.weight"].size(0)
        if symbols != len(dictionary):
            raise AggdecError(
                f"--verifier {path}: its {side} has {symbols} symbols, and the dictionary in {data.folder} has "
                f"{len(dictionary)}; name the data that it was trained on"
            )
    return weights


@dataclass
class _Stages:
    """The stages, in their order."""

    folder: Path
    data: DataBin
    record: Record
    recipe: Recipe
    device: torch.device
    end: float
    """when the work has to be done, on the clock of `time.monotonic`; infinity where --updates says"""
    measure: Measure

    def run(self) -> None:
        """Run the stages that are not done yet, and print the result."""
        plan = self.record.plan or self._plan()
        print(planning.describe(plan, len(self.data.source("train"))), flush=True)
        drafter, measured = self.folder / DRAFTER, self.record.measured
        if not drafter.is_file():  # else of a run that was stopped while it measured
            data = self._distil(plan)
            if not (self.folder / "training" / _LAST).is_file() and self.end < math.inf:
                plan = self.record.plan = planning.shortened(plan, self._minutes_left)
                self.record.save(self.folder)
            self._train(plan, data)
            write_average(_averaged(self.folder / "training"), drafter)
        if measured is None:
            share = min(1.0, max(0.1, self._minutes_left / plan.minutes["measure"]))
            _, measured = self._measured(drafter, math.ceil(share * plan.measured), self._block_sizes, self.end)
            self.record.measured = measured
            self.record.save(self.folder)
        best = max(measured, key=lambda one: one.speed_up)
        keep_draft_length(drafter, best.block_size)
        rows = [[GREEDY, "", "1.00", "", "1.00x"]]
        for one in measured:
            rows.append([GAD, str(one.block_size), f"{one.tokens:.2f}", f"{one.needed:.2f}", f"{one.speed_up:.2f}x"])
        table = planning.text_table(["mode", "k", "tokens an iteration", "needed", "over greedy"], rows)
        print(f"\n{table}\n\n{self._conclusion(drafter, best, plan)}")

    @property
    def _minutes_left(self) -> float:
        return (self.end - time.monotonic()) / 60

    @property
    def _block_sizes(self) -> list[int]:
        return sorted({max(1, round(share * self.recipe.block_size)) for share in _SHARES})

    def _measured(
        self, drafter: Path, sentences: int, block_sizes: Sequence[int], until: float
    ) -> tuple[float, list[Measured]]:
        return self.measure(self.data, self.recipe.verifier, drafter, self.device.type, sentences, block_sizes, until)

    def _plan(self) -> Plan:
        print("measuring how fast this machine distils and trains ...", file=sys.stderr, flush=True)
        settings, trial = self.record.settings, self.folder / "trial"
        shutil.rmtree(trial, ignore_errors=True)  # of a run that was stopped
        trial.mkdir()
        bf16 = is_bfloat16_fast(self.device)
        seconds = planning.trial_seconds(settings.minutes)
        costs = planning.try_out(self.data, self.recipe, self.device, bf16, trial, seconds)
        middle = self._block_sizes[len(self._block_sizes) // 2]
        sentence, (tried,) = self._measured(trial / _LAST, _TRIED, [middle], time.monotonic() + seconds / 2)
        shutil.rmtree(trial)
        decodings, left = ROUNDS * (1 + len(self._block_sizes)), self._minutes_left if settings.minutes else None
        plan = planning.plan_of(self.data, replace(costs, sentence=sentence), left, settings.updates, bf16, decodings)
        if settings.minutes and left is not None and left - plan.minutes["start"] < settings.minutes / 2:
            print(
                f"--minutes {settings.minutes:g} are few: on this machine the trial took {settings.minutes - left:.1f} "
                f"of them, and to start the training takes {plan.minutes['start']:.1f}",
                file=sys.stderr,
            )
        self.record.plan = plan = replace(plan, tried=tried)
        self.record.save(self.folder)
        return plan

    def _distil(self, plan: Plan) -> DataBin:
        part = write_sample(self.folder / "data-bin", self.data, plan.sentences)
        distilled = self.folder / "distilled"
        teacher = teacher_of(part, self.recipe, self.device, plan.bf16)
        most = _LATE * plan.minutes["distil"] if self.end < math.inf else math.inf
        # the few validation sentences first: what is not decoded in time is left out
        splits, until = sorted(plan.sentences, reverse=True), time.monotonic() + 60 * most
        distil(teacher, distilled, splits, Workers(), shard_sentences=_SHARD, until=until)
        return DataBin(distilled, part.source_lang, part.target_lang)

    def _train(self, plan: Plan, data: DataBin) -> None:
        arguments = self.recipe.arguments(data, self.folder / "training", plan.updates, plan.bf16, plan.saves)
        last = self.folder / "training" / _LAST
        before = read_checkpoint(last) if last.is_file() else None
        if before is not None and before["optimizer_history"][-1]["num_updates"] >= plan.updates:
            return  # stopped before the average was written
        if self.end < math.inf:  # fairseq counts the time of earlier runs, too, and none before it trains
            left = self._minutes_left - plan.minutes.get("start", 0.0) - plan.minutes["measure"]
            earlier = 0.0 if before is None else before["extra_state"]["previous_training_time"] / 3600
            arguments += ["--stop-time-hours", str(earlier + max(_LEAST, left) / 60)]
        log = self.folder / "train.log"
        print(f"training; the log is {log}", file=sys.stderr, flush=True)
        done = train(arguments, log, plan.updates)
        if done < plan.updates:
            print(f"--minutes are over: {done:,} of {plan.updates:,} updates were trained", file=sys.stderr)

    def _conclusion(self, drafter: Path, best: Measured, plan: Plan) -> str:
        """How to decode with the drafter, and whether it is worth it."""
        words: list[Any] = ["fairseq-generate", self.data.folder, "--task", "aggressive_translation"]
        words += ["--decoding", GAD, "--path", self.recipe.verifier, "--drafter-path", drafter, "--batch-size", 1]
        words += ["-s", self.data.source_lang, "-t", self.data.target_lang, "--gen-subset", "valid"]
        words += ["--skip-invalid-size-inputs-valid-test"]  # as distillation does
        if self.device.type == "cpu":
            words.append("--cpu")
        text = f'{shlex.join(map(str, words))} --user-dir "$(aggdec user-dir)"'
        verdict = (
            f"k = {best.block_size} is the fastest: without --block-size, {DRAFTER} drafts {best.block_size} tokens."
        )
        if best.speed_up <= 1:
            verdict += (
                f" gad is not faster than greedy here. More training may change that, or not: the same command with "
                f"--updates {2 * plan.updates} in place of its --updates or --minutes goes on in this folder."
            )
        return f"{verdict} To decode with the drafter, with the output of --beam 1:\n{text}"


def _averaged(folder: Path) -> list[Path]:
    """The last checkpoints of a training; their mean is the drafter."""
    numbered = len(list(folder.glob("checkpoint_*_*.pt")))  # none where every update ends an epoch
    return last_checkpoints(folder, min(AVERAGED, numbered)) if numbered else [folder / _LAST]
