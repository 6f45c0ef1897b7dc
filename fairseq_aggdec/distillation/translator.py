"""A model, or an ensemble, that translates batches of sources in any mode."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel

from fairseq_aggdec.distillation.data_bin import DataBin, Tokens
from fairseq_aggdec.distillation.settings import SearchOptions
from fairseq_aggdec.engine.supported_models import unsupported_decoder
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import file_sha256
from fairseq_aggdec.tasks.loading import load

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Translator:
    """Translates batches of sources.

    Args:
        path: a checkpoint, or several joined by `:`, which decode as an ensemble.
        data: the folder with the dictionaries that they were trained with.
        search: the options of fairseq's search.
        device: the device to run on.
        precision: a key of `PRECISIONS`.
        options: options of the plugin's task (`decoding="iad"`); the default is fairseq's own beam search.

    Raises:
        AggdecError: a checkpoint cannot be read or does not fit the dictionaries.
    """

    def __init__(
        self,
        path: str,
        data: DataBin,
        search: SearchOptions,
        device: torch.device,
        precision: str = "fp32",
        **options: Any,
    ) -> None:
        if precision == "bf16" and device.type == "cpu" and options.get("decoding", "beam") != "beam":
            precision, options = "fp32", {**options, "bf16": True}  # bfloat16 for the engine's matrix products alone
        self._task, models = load(path, str(data.folder), data.source_lang, data.target_lang, **options)
        self._models: list[BaseFairseqModel] = [
            model.to(device=device, dtype=PRECISIONS[precision]) for model in models
        ]
        for model in self._models:
            model.eval()
        self._device = device
        self._search = search
        self.start_afresh()

    def start_afresh(self) -> None:
        """Forget what the draft schedule has learnt, so that translations do not depend on earlier batches."""
        self._generator = self._task.build_generator(self._models, Namespace(**asdict(self._search)))

    @property
    def longest_source(self) -> int:
        """The most tokens of a source that all models take, EOS included."""
        return min(int(model.max_positions()[0]) for model in self._models)

    @property
    def unsupported(self) -> str | None:
        """Why this plugin's engine cannot run one of the models, so that fairseq decodes; None where it can."""
        reasons = (unsupported_decoder(model.decoder) for model in self._models)
        return next(filter(None, reasons), None)

    @torch.inference_mode()
    def translate(self, numbers: Sequence[int], sources: Sequence[Tokens]) -> list[Tokens]:
        """The tokens, EOS included, of the best hypothesis for each source.

        Args:
            numbers: the sentences' numbers, for error messages.
            sources: the sources' tokens, EOS included.

        Raises:
            AggdecError: the search found no hypothesis, as all scores were NaN.
        """
        sentences = [torch.from_numpy(source) for source in sources]
        dataset = self._task.build_dataset_for_inference(sentences, [len(sentence) for sentence in sentences])
        batch: dict[str, Any] = dataset.collater([dataset[i] for i in range(len(sentences))])
        if self._device.type != "cpu":
            batch = utils.apply_to_sample(lambda tensor: tensor.to(self._device), batch)
        hypotheses = self._task.inference_step(self._generator, self._models, batch)
        targets: dict[int, Tokens] = {}
        for position, found in zip(batch["id"].tolist(), hypotheses, strict=True):
            if not found:
                raise AggdecError(f"sentence {numbers[position]}: the model gives no finite score; try without --fp16")
            targets[position] = found[0]["tokens"].cpu().numpy()
        return [targets[position] for position in range(len(sources))]


def fingerprints(path: str) -> list[str]:
    """The SHA-256 of each checkpoint of an ensemble.

    Raises:
        AggdecError: a file does not exist.
    """
    for name in path.split(":"):
        if not Path(name).is_file():
            what = "a folder; name a file in it" if Path(name).is_dir() and name else "no such file"
            raise AggdecError(f"checkpoint {name or 'without a name in ' + path}: {what}")
    return [file_sha256(Path(name)) for name in path.split(":")]
