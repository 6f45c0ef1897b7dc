"""Super-resolution of images as a sequence-to-sequence task (papers/004 §7.2).

The source is a small image and the target a large one, both as sequences of intensities, so that every model, criterion
and decoding mode of translation can be used. An output has one token for each intensity of its image; then EOS is
forced.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import astuple
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf, open_dict

from fairseq_aggdec.errors import AggdecError, check_least, option_name
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationTask
from fairseq_aggdec.tasks.fairseq_options import check_options
from fairseq_aggdec.tasks.super_resolution import SuperResolutionConfig

from .images import HELD_OUT, Images, make_splits, open_images, read_outputs, reduced
from .positions import start_from_coordinates
from .tokens import ImageSizes, ImageTokens, intensity_dictionary

_SIZES_KEY = "image_sizes"
"""key of the image sizes in a checkpoint"""
_TEXT_OPTIONS = (
    "source_lang",
    "target_lang",
    "load_alignments",
    "truncate_source",
    "eval_bleu",
)
"""options of translation that make no sense for images"""
_LENGTH_DEFAULTS = {"min_len": 1, "max_len_a": 0, "max_len_b": 200}
"""fairseq's defaults of the options that the image size decides"""


class SuperResolutionTask(AggressiveTranslationTask):
    """Trains plain Transformers (and models with proposal heads) on images, and decodes with them."""

    cfg: SuperResolutionConfig

    def __init__(
        self, cfg: SuperResolutionConfig, src_dict: Dictionary, tgt_dict: Dictionary
    ) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.sizes = sizes_of(cfg)
        cfg.max_source_positions = self.sizes.input_tokens + 1
        cfg.max_target_positions = self.sizes.output_tokens + 1
        self._images: Images | None = None
        # fairseq saves it in the checkpoint, and restores it before it builds the checkpoint's model
        self.state.merge_state_dict({_SIZES_KEY: list(astuple(self.sizes))})

    @classmethod
    def setup_task(
        cls, cfg: SuperResolutionConfig, **kwargs: Any
    ) -> "SuperResolutionTask":
        """Check the options and make the task; images are read when a split is loaded."""
        check_options(cfg)
        _check_image_options(cfg)
        _look_for_no_further_splits(cfg)
        dictionary = intensity_dictionary()
        return cls(cfg, dictionary, dictionary)

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> None:
        """Read the images of a split; raises `AggdecError` where there is no such split, or an image cannot be used."""
        if self._images is None:
            self._images = open_images(Path(str(self.cfg.data)), bool(self.cfg.grey))
        numbers = make_splits(
            self._images.names, self.cfg.valid_images, self.cfg.test_images
        )
        if split not in numbers:
            raise AggdecError(
                f"{split}: no such split of images; --gen-subset takes {', '.join(numbers)}"
            )
        outputs = read_outputs(self._images, numbers[split], self.sizes)
        source = ImageTokens(
            reduced(outputs, self.sizes.input_size), self.source_dictionary
        )
        target = ImageTokens(outputs, self.target_dictionary)
        self.datasets[split] = LanguagePairDataset(
            source,
            source.sizes,
            self.source_dictionary,
            target,
            target.sizes,
            self.target_dictionary,
            shuffle=split not in HELD_OUT,
        )

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build a model with one position for each token of an image.

        Raises `AggdecError` for a checkpoint of another image size, and where --coordinate-positions does not fit.
        """
        trained_for = self.state.state_dict[_SIZES_KEY]
        if from_checkpoint and trained_for != list(astuple(self.sizes)):
            theirs = ImageSizes(*trained_for)
            grey = "with" if theirs.channels == 1 else "without"
            raise AggdecError(
                f"the model was trained for {theirs}, the options say {self.sizes}: give --input-size "
                f"{theirs.input_size} --output-size {theirs.output_size}, {grey} --grey"
            )
        starts_anew = self.cfg.coordinate_positions and not from_checkpoint
        if starts_anew and getattr(cfg, "base_checkpoint", None):
            raise AggdecError(
                "--coordinate-positions: the model of --base-checkpoint has positions; leave it out"
            )
        with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
            cfg.max_source_positions = self.cfg.max_source_positions
            cfg.max_target_positions = self.cfg.max_target_positions
        model = super().build_model(cfg, from_checkpoint)
        if starts_anew:
            start_from_coordinates(model, self.sizes)
        return model

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        **given: Any,
    ) -> SequenceGenerator:
        """As for translation; an output consists of exactly the intensities of an image.

        Raises `AggdecError` where the mode cannot honour an option, or an option sets another length.
        """
        self._fix_length(args)
        args.unkpen = math.inf  # fairseq refuses <unk> in `tokens_to_suppress`
        extra = {
            **(extra_gen_cls_kwargs or {}),
            "tokens_to_suppress": (self.target_dictionary.bos_word,),
        }
        return super().build_generator(models, args, seq_gen_cls, extra, **given)

    def _fix_length(self, args: Any) -> None:
        tokens = self.sizes.output_tokens
        wanted = {"min_len": tokens, "max_len_a": 0, "max_len_b": tokens}
        for name, default in _LENGTH_DEFAULTS.items():
            given = getattr(args, name, default)
            if given not in (default, wanted[name]):
                raise AggdecError(
                    f"{option_name(name)} {given}: the image size determines the output's length; leave it out"
                )
        for name in ("match_source_len", "no_repeat_ngram_size"):
            if getattr(args, name, None):
                raise AggdecError(
                    f"{option_name(name)} has no meaning for images: leave it out"
                )
        for name, value in wanted.items():
            setattr(args, name, value)

    def get_interactive_tokens_and_lengths(
        self, lines: list[str], encode_fn: Callable[[str], str]
    ) -> Any:
        """For fairseq-interactive: each line has the intensities of one small image.

        Raises `AggdecError` where a line has other words, or another number of intensities.
        """
        for number, line in enumerate(
            lines, start=self._lines_before + len(self._buffer) + 1
        ):
            words = line.split()
            odd = next(
                (word for word in words if word not in self.source_dictionary.indices),
                None,
            )
            if odd is not None or len(words) != self.sizes.input_tokens:
                what = f"{len(words)} words" if odd is None else f"'{odd[:20]}'"
                raise AggdecError(
                    f"line {number}: {what}, where {self.sizes.input_tokens} intensities from 0 to 255 are expected"
                )
        return super().get_interactive_tokens_and_lengths(lines, encode_fn)


def sizes_of(cfg: Any) -> ImageSizes:
    """The image sizes by the options; raises `AggdecError` where the large one is no multiple of the small one."""
    check_least(cfg, 1, "input_size")
    small = int(cfg.input_size)
    large = int(cfg.output_size)
    if large <= small or large % small:
        raise AggdecError(
            f"--output-size {large} is no multiple of --input-size {small}: each pixel becomes a square"
        )
    return ImageSizes(small, large, 1 if cfg.grey else 3)


def _check_image_options(cfg: SuperResolutionConfig) -> None:
    """Raise `AggdecError` where data are missing or an option makes no sense for images."""
    if not cfg.data:
        raise AggdecError("no data given: name an .npz file or a folder of images")
    for name in _TEXT_OPTIONS:
        if getattr(cfg, name) != getattr(SuperResolutionConfig, name):
            raise AggdecError(
                f"{option_name(name)} has no meaning for --task super_resolution: leave it out"
            )
    sizes_of(cfg)
    check_least(cfg, 1, "valid_images", "test_images")


def _look_for_no_further_splits(cfg: Any) -> None:
    """Keep fairseq-train from looking for valid1, valid2, ... in the data, which need not be a folder."""
    whole = cfg._get_parent() if OmegaConf.is_config(cfg) else None
    if whole is not None and "dataset" in whole:
        whole.dataset.ignore_unused_valid_subsets = True
