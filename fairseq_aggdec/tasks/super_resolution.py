"""Super-resolution of images as a sequence-to-sequence task (papers/004 §7.2).

A small image is the source, a large one the target, both as sequences of intensities: every model, criterion and
decoding mode of translation serves here. The length of the output is that of the image; EOS is forced behind it.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from omegaconf import OmegaConf, open_dict

from fairseq_aggdec.data.image_tokens import ImageSizes, ImageTokens, intensity_dictionary
from fairseq_aggdec.data.images import HELD_OUT, Images, make_splits, open_images, read_outputs, reduced
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.models.image_positions import start_from_coordinates
from fairseq_aggdec.tasks.aggressive_translation import (
    AggressiveTranslationConfig,
    AggressiveTranslationTask,
    check_options,
)

_STATE = "image_sizes"
"""what a checkpoint records of `ImageSizes`"""
_NO_TEXT = ("source_lang", "target_lang", "load_alignments", "truncate_source", "eval_bleu")
"""options of translation without meaning here"""
_LENGTH_DEFAULTS = {"min_len": 1, "max_len_a": 0, "max_len_b": 200}
"""fairseq's, of the options that the image's size decides"""


@dataclass
class SuperResolutionConfig(AggressiveTranslationConfig):
    """Options of the task, beside all of decoding; `data` is an .npz file or a folder of images."""

    input_size: int = field(default=8, metadata={"help": "pixels on a side of the small image"})
    output_size: int = field(default=32, metadata={"help": "pixels on a side of the large image; a multiple"})
    grey: bool = field(default=False, metadata={"help": "one channel instead of red, green and blue"})
    valid_images: int = field(default=100, metadata={"help": "different images held out as the split valid"})
    test_images: int = field(default=100, metadata={"help": "different images held out as the split test"})
    coordinate_positions: bool = field(
        default=False,
        metadata={
            "help": "training: let learned position embeddings begin as sines of row and column, which a plain "
            "Transformer would first have to find out"
        },
    )


@register_task("super_resolution", dataclass=SuperResolutionConfig)
class SuperResolutionTask(AggressiveTranslationTask):
    """Trains plain Transformers (and models with proposal heads) on images, and decodes with them."""

    cfg: SuperResolutionConfig

    def __init__(self, cfg: SuperResolutionConfig, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.sizes = sizes_of(cfg)
        cfg.max_source_positions = self.sizes.input_tokens + 1
        cfg.max_target_positions = self.sizes.output_tokens + 1
        self._images: Images | None = None
        # fairseq saves it in the checkpoint, and gives it back before it builds the checkpoint's model
        self.state.merge_state_dict({_STATE: _as_list(self.sizes)})

    @classmethod
    def check_data(cls, cfg: SuperResolutionConfig) -> None:
        """Refuse options without meaning for images.

        Raises:
            AggdecError: naming the option.
        """
        if not cfg.data:
            raise AggdecError("no data given: name an .npz file or a folder of images")
        for name in _NO_TEXT:
            if getattr(cfg, name) != getattr(SuperResolutionConfig, name):
                raise AggdecError(
                    f"--{name.replace('_', '-')} has no meaning for --task super_resolution: leave it out"
                )
        sizes_of(cfg)
        for name in ("valid_images", "test_images"):
            if getattr(cfg, name) < 1:
                raise AggdecError(f"--{name.replace('_', '-')} {getattr(cfg, name)}: give at least 1")

    @classmethod
    def setup_task(cls, cfg: SuperResolutionConfig, **kwargs: Any) -> "SuperResolutionTask":
        """Options are checked; images are read when a split is wanted.

        Raises:
            AggdecError: an option that makes no sense.
        """
        check_options(cfg)
        cls.check_data(cfg)
        _look_for_no_further_splits(cfg)
        dictionary = intensity_dictionary()
        return cls(cfg, dictionary, dictionary)

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> None:
        """Make a split (train, valid or test) of the images.

        Raises:
            AggdecError: there is no such split, or the images cannot be used.
        """
        if self._images is None:
            self._images = open_images(Path(str(self.cfg.data)), bool(self.cfg.grey))
        numbers = make_splits(self._images.names, self.cfg.valid_images, self.cfg.test_images)
        if split not in numbers:
            raise AggdecError(f"{split}: no such split of images; --gen-subset takes {', '.join(numbers)}")
        outputs = read_outputs(self._images, numbers[split], self.sizes)
        source = ImageTokens(reduced(outputs, self.sizes.input_size), self.source_dictionary)
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
        """Build a model with a position for every token.

        Raises:
            AggdecError: a checkpoint of other images, or positions that cannot be set.
        """
        trained_for = self.state.state_dict[_STATE]
        if from_checkpoint and trained_for != _as_list(self.sizes):
            theirs = ImageSizes(*trained_for)
            grey = "with" if theirs.channels == 1 else "without"
            raise AggdecError(
                f"the model was trained for {theirs}, the options say {self.sizes}: give --input-size "
                f"{theirs.input_size} --output-size {theirs.output_size}, {grey} --grey"
            )
        starts_anew = self.cfg.coordinate_positions and not from_checkpoint
        if starts_anew and getattr(cfg, "base_checkpoint", None):
            raise AggdecError("--coordinate-positions: the model of --base-checkpoint has positions; leave it out")
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
        prefix_allowed_tokens_fn: Callable[[int, Any], list[int]] | None = None,
    ) -> SequenceGenerator:
        """As for translation; outputs have exactly the image's intensities, and nothing else.

        Raises:
            AggdecError: an option that the mode cannot honour, or that would give the output another length.
        """
        self._fix_length(args)
        args.unkpen = math.inf  # fairseq refuses to suppress this symbol as it does others
        extra = {**(extra_gen_cls_kwargs or {}), "tokens_to_suppress": (self.target_dictionary.bos_word,)}
        return super().build_generator(models, args, seq_gen_cls, extra, prefix_allowed_tokens_fn)

    def _fix_length(self, args: Any) -> None:
        tokens = self.sizes.output_tokens
        wanted = {"min_len": tokens, "max_len_a": 0, "max_len_b": tokens}
        for name, default in _LENGTH_DEFAULTS.items():
            given = getattr(args, name, default)
            if given not in (default, wanted[name]):
                raise AggdecError(
                    f"--{name.replace('_', '-')} {given}: the image's size decides how long the output is; leave it out"
                )
        for name in ("match_source_len", "no_repeat_ngram_size"):
            if getattr(args, name, None):
                raise AggdecError(f"--{name.replace('_', '-')} has no meaning for images: leave it out")
        for name, value in wanted.items():
            setattr(args, name, value)

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Callable[[str], str]) -> Any:
        """For fairseq-interactive: lines of intensities, one small image each.

        Raises:
            AggdecError: a line that is none.
        """
        for number, line in enumerate(lines, start=self._lines_read + len(self._buffer) + 1):
            words = line.split()
            odd = next((word for word in words if word not in self.source_dictionary.indices), None)
            if odd is not None or len(words) != self.sizes.input_tokens:
                what = f"{len(words)} words" if odd is None else f"'{odd[:20]}'"
                raise AggdecError(
                    f"line {number}: {what}, where {self.sizes.input_tokens} intensities from 0 to 255 are read"
                )
        return super().get_interactive_tokens_and_lengths(lines, encode_fn)


def sizes_of(cfg: Any) -> ImageSizes:
    """The sizes that options ask for.

    Raises:
        AggdecError: they do not go together.
    """
    small, large = int(cfg.input_size), int(cfg.output_size)
    if small < 1:
        raise AggdecError(f"--input-size {small}: give at least 1")
    if large <= small or large % small:
        raise AggdecError(f"--output-size {large} is no multiple of --input-size {small}: each pixel becomes a square")
    return ImageSizes(small, large, 1 if cfg.grey else 3)


def _look_for_no_further_splits(cfg: Any) -> None:
    """Says to fairseq-train that no files named valid1, valid2... lie in the data folder, which need not be one."""
    whole = cfg._get_parent() if OmegaConf.is_config(cfg) else None
    if whole is not None and "dataset" in whole:
        whole.dataset.ignore_unused_valid_subsets = True


def _as_list(sizes: ImageSizes) -> list[int]:
    return [sizes.input_size, sizes.output_size, sizes.channels]
