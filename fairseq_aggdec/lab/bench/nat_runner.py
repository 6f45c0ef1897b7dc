"""Runs fairseq's non-autoregressive models, by its task `translation_lev` and its generator, on the same sentences."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.models.nat import CMLMNATransformerModel, FairseqNATModel
from fairseq.tasks.translation_lev import (
    TranslationLevenshteinConfig,
    TranslationLevenshteinTask,
)

from fairseq_aggdec.compat.checkpoints import read_checkpoint
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.fairseq_runner import SampleRunner
from fairseq_aggdec.lab.bench.modes import ModeSpec, NatPeer
from fairseq_aggdec.lab.bench.rounds import Output
from fairseq_aggdec.models.architectures import option_of, recorded_options
from fairseq_aggdec.process import shorten_waits
from fairseq_aggdec.tasks import loading

Loaded = tuple[TranslationLevenshteinTask, BaseFairseqModel]


class NatRunner(SampleRunner):
    """One non-autoregressive model, with the batches on its device."""

    def __init__(
        self,
        loaded: Loaded,
        mode: ModeSpec,
        sentences: Sequence[torch.Tensor],
        batch_size: int,
    ) -> None:
        """
        Args:
            loaded: from `load_nat`.
            mode: a mode with `nat`.
            sentences: sources as token ids, EOS included.
            batch_size: sentences in a batch.

        Raises:
            AggdecError: a length beam is asked of a model that does not predict lengths.
        """
        self._task, self._model = loaded
        assert mode.nat is not None
        if mode.nat.length_beam > 1 and not self._model.allow_length_beam:
            raise AggdecError(
                f"{mode.nat.option}: {type(self._model).__name__} predicts no lengths: leave the length beam out"
            )
        batches = loading.batches_of(
            self._task, sentences, batch_size, by_length=batch_size > 1
        )
        super().__init__(mode, self._model, batches)
        settings = Namespace(
            # fairseq does not count the first pass
            iter_decode_max_iter=mode.nat.iterations - 1,
            iter_decode_with_beam=mode.nat.length_beam,
            # CMLM masks again after a pass: what fairseq takes for an output that no longer changes has masks in it
            iter_decode_force_max_iter=isinstance(self._model, CMLMNATransformerModel),
        )
        self._generator = self._task.build_generator([self._model], settings)

    def decode(self, index: int) -> list[list[dict[str, Any]]]:
        shorten_waits(False)
        return self._task.inference_step(
            self._generator, [self._model], self.samples[index]
        )

    def outputs(
        self, index: int, decoded: list[list[dict[str, Any]]]
    ) -> dict[int, Output]:
        """See `ModeRunner.outputs`; BOS, with which these models' outputs begin, is left out."""
        bos = self._task.target_dictionary.bos()
        outputs = {}
        for sentence, (best, *_) in zip(self.batches[index], decoded, strict=True):
            tokens = best["tokens"].tolist()
            kept = tokens[1:] if tokens[:1] == [bos] else tokens
            outputs[sentence] = Output(kept, hypothesis=best, passes=best["steps"] + 1)
        return outputs


def load_nat(
    peer: NatPeer, data: str, source_lang: str | None, target_lang: str | None
) -> Loaded:
    """A non-autoregressive model of fairseq and the task that it decodes with.

    Args:
        peer: the model's checkpoint and options.
        data: folder with the dictionaries.
        source_lang, target_lang: suffixes of the dictionaries' names.

    Raises:
        AggdecError: the checkpoint cannot be read, or its architecture or dictionaries do not fit.
    """
    checkpoint = read_checkpoint(peer.path)
    options = recorded_options(checkpoint)
    name = option_of(options, "_name") or option_of(options, "arch")
    if not issubclass(ARCH_MODEL_REGISTRY.get(name, object), FairseqNATModel):
        raise AggdecError(
            f"{peer.option}: {peer.path} is a {name or 'model of unknown kind'}, none of fairseq's non-autoregressive "
            "models (nonautoregressive_transformer, cmlm_transformer, levenshtein_transformer, ...)"
        )
    config = TranslationLevenshteinConfig(
        data=data, source_lang=source_lang, target_lang=target_lang
    )
    # by default these refer to the whole configuration of a fairseq command, which does not exist here
    config.train_subset = "train"
    config.dataset_impl = None
    config.required_seq_len_multiple = 1
    task = TranslationLevenshteinTask.setup_task(config)
    for side, dictionary in (
        ("encoder", task.source_dictionary),
        ("decoder", task.target_dictionary),
    ):
        rows = checkpoint["model"][f"{side}.embed_tokens.weight"].size(0)
        if rows != len(dictionary):
            raise AggdecError(
                f"{peer.option}: {peer.path} has {rows} symbols in its {side}, the dictionary in {data} has "
                f"{len(dictionary)}: train it on data that was binarised with this dictionary"
            )
    (model,), _ = checkpoint_utils.load_model_ensemble([peer.path], task=task)
    model.eval()
    return task, model
