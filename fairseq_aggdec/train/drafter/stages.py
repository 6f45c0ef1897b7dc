"""`aggdec drafter`: plan, distil, train, average, measure; what an earlier run has done is not done again."""

import hashlib
import math
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from fairseq_aggdec.bulk.data_bin import DataBin, write_sample
from fairseq_aggdec.bulk.running import device_of_environment
from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.compat.training import is_bfloat16_fast
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import alone_at, file_sha256
from fairseq_aggdec.generation.modes import GREEDY
from fairseq_aggdec.hub.generation import flags
from fairseq_aggdec.hub.settings import FILE, Settings
from fairseq_aggdec.train.averaging import last_checkpoints, write_average
from fairseq_aggdec.train.distilling import distil
from fairseq_aggdec.train.drafter.fairseq_train import train
from fairseq_aggdec.train.drafter.folder import DRAFTER, Record, open_record, save
from fairseq_aggdec.train.drafter.plan import Measured, Plan, describe, plan_of
from fairseq_aggdec.train.drafter.recipe import AVERAGED, LAST, Recipe
from fairseq_aggdec.train.drafter.trial import Measure, try_out
from fairseq_aggdec.train.exporting import keep_draft_length
from fairseq_aggdec.train.shrinking import layer_counts

_SHARD = 100
"""sentences that are distilled at a time"""
_LATE = 1.5
"""how many times its planned time the distillation may take"""
_LEAST = 3.0
"""seconds that are trained although all are over"""


def make_drafter(args: Any, measure: Measure) -> None:
    """Run `aggdec drafter` with its parsed options.

    Args:
        args: the options, and `begun`, when the command began on the clock of `time.monotonic`.
        measure: see `Measure`.

    Raises:
        AggdecError: a file or an option cannot be used, the training failed, or a lossless mode was not lossless.
    """
    # absolute: a name may begin with a dash, and the command that is printed in the end works in every folder
    out = args.out.absolute()
    verifier = args.verifier.absolute()
    data = DataBin.find(args.data.absolute(), args.source_lang, args.target_lang)
    weights = _verifiers_weights(verifier, data)
    fingerprints = [
        *data.fingerprint("train").values(),
        *data.fingerprint("valid").values(),
    ]
    settings = {
        "verifier": file_sha256(verifier),
        "data": hashlib.sha256("".join(fingerprints).encode()).hexdigest(),
        "decoder_layers": args.decoder_layers,
        "block_size": args.block_size,
    }
    device = device_of_environment(args.cpu)
    out.mkdir(parents=True, exist_ok=True)
    with alone_at(out):
        record = open_record(out, Record(settings, args.minutes, args.updates))
        recipe = Recipe(
            verifier,
            weights["decoder.layers.0.fc1.weight"].size(1),
            min(args.decoder_layers, layer_counts(weights)["decoder"]),
            args.block_size,
            device,
            record.plan.trial.bf16 if record.plan else is_bfloat16_fast(device),
        )
        end = args.begun + 60 * (args.minutes or math.inf)
        _Stages(out, data, record, recipe, end, measure).run()


def _verifiers_weights(path: Path, data: DataBin) -> dict[str, torch.Tensor]:
    """The weights of a model that can have a drafter, by what its checkpoint shows.

    Raises:
        AggdecError: it is a drafter, no Transformer encoder-decoder, or has other dictionaries than the data.
    """
    weights: dict[str, torch.Tensor] = read_checkpoint(path)["model"]
    if "decoder.mask_embedding" in weights:
        raise AggdecError(
            f"--verifier {path}: is a block drafter; name the model that it is to draft for"
        )
    if not all(layer_counts(weights).values()):
        raise AggdecError(
            f"--verifier {path}: no Transformer encoder-decoder of fairseq"
        )
    for side, dictionary in (
        ("encoder", data.source_dictionary),
        ("decoder", data.target_dictionary),
    ):
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
    end: float
    """when the work has to be done, on the clock of `time.monotonic`; infinity where --updates says"""
    measure: Measure

    def run(self) -> None:
        """Run the stages that are not done yet, and print the result."""
        plan = self.record.plan or self._planned()
        print(describe(plan, len(self.data.source("train"))), flush=True)
        drafter = self.folder / DRAFTER
        training = self.folder / "training"
        if not drafter.is_file():  # else of a run that was stopped while it measured
            data = self._distil(plan)
            if self.end < math.inf and not (training / LAST).is_file():
                # distillation may have taken longer than planned
                plan = min(plan, plan.fitting(self._left), key=lambda one: one.updates)
                self._keep(plan=plan)
            self._train(plan, data)
            # none where every update ends an epoch
            count = len(list(training.glob("checkpoint_*_*.pt")))
            last = [training / LAST]
            if count:
                last = last_checkpoints(training, min(AVERAGED, count))
            write_average(last, drafter)
        measured = self.record.measured or self._measured(drafter, plan)
        best = max(measured, key=lambda one: one.speed_up)
        keep_draft_length(drafter, best.block_size)
        table = tabulate(
            [[GREEDY, "", "1.00", "", "1.00x"], *(one.cells for one in measured)],
            ["mode", "k", "tokens an iteration", "needed", "over greedy"],
            "simple",
            disable_numparse=True,
        )
        print(f"\n{table}\n\n{self._conclusion(drafter, best, plan)}")

    def _keep(self, **results: Any) -> None:
        """Write the plan or the measurements into the record."""
        self.record = save(self.folder, replace(self.record, **results))

    @property
    def _left(self) -> float:
        """The time left, in seconds."""
        return self.end - time.monotonic()

    def _planned(self) -> Plan:
        print(
            "measuring how fast this machine distils and trains ...",
            file=sys.stderr,
            flush=True,
        )
        trial = self.folder / "trial"
        minutes = self.record.minutes
        shutil.rmtree(trial, ignore_errors=True)  # of a run that was stopped
        trial.mkdir()
        found = try_out(self.data, self.recipe, trial, minutes, self.measure)
        shutil.rmtree(trial)
        left = self._left if minutes else None
        plan = plan_of(self.data, found, left, self.record.updates)
        self._keep(plan=plan)
        return plan

    def _distil(self, plan: Plan) -> DataBin:
        part = write_sample(self.folder / "data-bin", self.data, plan.sentences)
        distilled = self.folder / "distilled"
        most = _LATE * plan.seconds["distil"] if self.end < math.inf else math.inf
        distil(
            self.recipe.teacher(part),
            distilled,
            # the few validation sentences first: what is not decoded in time is left out
            sorted(plan.sentences, reverse=True),
            shard_sentences=_SHARD,
            until=time.monotonic() + most,
        )
        return DataBin(distilled, part.source_lang, part.target_lang)

    def _train(self, plan: Plan, data: DataBin) -> None:
        folder = self.folder / "training"
        arguments = self.recipe.arguments(data, folder, plan.updates, plan.saves)
        # what an earlier run has trained
        done = 0
        seconds = 0.0
        if (folder / LAST).is_file():
            before = read_checkpoint(folder / LAST)
            done = before["optimizer_history"][-1]["num_updates"]
            seconds = before["extra_state"]["previous_training_time"]
        if done >= plan.updates:
            return  # stopped before the average was written
        # fairseq counts the time of earlier runs, too, and none before it trains
        if self.end < math.inf:
            seconds += max(
                _LEAST, self._left - plan.trial.start - plan.seconds["measure"]
            )
            arguments += ["--stop-time-hours", str(seconds / 3600)]
        log = self.folder / "train.log"
        print(f"training; the log is {log}", file=sys.stderr, flush=True)
        done = train(arguments, log, done, plan.updates)
        if done < plan.updates:
            print(
                f"--minutes are over: {done:,} of {plan.updates:,} updates were trained",
                file=sys.stderr,
            )

    def _measured(self, drafter: Path, plan: Plan) -> list[Measured]:
        recipe = self.recipe
        share = min(1.0, max(0.1, self._left / plan.seconds["measure"]))
        _, measured = self.measure(
            self.data,
            recipe.verifier,
            drafter,
            recipe.device.type,
            math.ceil(share * plan.measured),
            recipe.block_sizes,
            self.end,
        )
        self._keep(measured=measured)
        return measured

    def _conclusion(self, drafter: Path, best: Measured, plan: Plan) -> str:
        """How to decode with the drafter, and whether it is worth it."""
        data = self.data
        verifier = self.recipe.verifier
        # too long sentences are left out, as by distillation
        words: list[Any] = [
            "fairseq-generate",
            data.folder,
            *"--task aggressive_translation --decoding gad --path".split(),
            verifier,
            "--drafter-path",
            drafter,
            *f"--batch-size 1 -s {data.source_lang} -t {data.target_lang}".split(),
            *"--gen-subset valid --skip-invalid-size-inputs-valid-test".split(),
        ]
        words += ["--cpu"] * self.recipe.is_cpu
        if (data.folder / FILE).is_file():  # an imported model's
            words += ["--bpe", "hub", "--hub-folder", verifier.parent]
            words += flags(Settings.greedy_search(data.folder))
        text = f'{shlex.join(map(str, words))} --user-dir "$(aggdec user-dir)"'
        k = best.block_size
        verdict = f"k = {k} is the fastest: without --block-size, {DRAFTER} drafts {k} tokens."
        if best.speed_up <= 1:
            verdict += (
                f" gad is not faster than greedy here. More training may change that, or not: the same command with "
                f"--updates {2 * plan.updates} in place of its --updates or --minutes goes on in this folder."
            )
        return f"{verdict} To decode with the drafter, with the output of --beam 1:\n{text}"
