"""fairseq's translation by imported models: a text's source and output have the tokens around it that the model knows.

Data folders hold texts alone, and a `hub.json` beside the dictionaries. `--task hub_translation` is fairseq's
search on them; this plugin's tasks of translation, and that of training drafters, read them as well.
"""

import logging
import math
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from fairseq import utils
from fairseq.data import BaseWrapperDataset, FairseqDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask, register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from fairseq_aggdec.decoding.drafters.input_guided import PromptTemplate
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.files import dictionary_file
from fairseq_aggdec.hub.settings import FILE, T5, T5_LENGTH, Settings
from fairseq_aggdec.tasks.data_folder import Hypothesis, TaskConfig, language_pair

logger = logging.getLogger(__name__)


class TemplatedDataset(BaseWrapperDataset):
    """One side of a split with the tokens around its texts; `dataset` has the texts, EOS last."""

    def __init__(
        self,
        dataset: FairseqDataset,
        before: Sequence[int],
        after: Sequence[int],
        longest: int | None = None,
    ) -> None:
        """`longest`: the most tokens of a sentence, which is cut to it; None: no limit."""
        super().__init__(dataset)
        added = len(before) + len(after)
        self._before = before
        self._after = after
        self._longest = None if longest is None else longest - added
        self._sizes = added + np.clip(np.asarray(dataset.sizes) - 1, 0, self._longest)

    def __getitem__(self, index: int) -> Tensor:
        return _between(
            self._before, self.dataset[index][:-1][: self._longest], self._after
        )

    @property
    def sizes(self) -> np.ndarray:
        return self._sizes


class HubTemplateMixin(FairseqTask):
    """Mixin, named before fairseq's `TranslationTask`: gives texts the model's form where the data has a `hub.json`."""

    needs_settings: ClassVar[bool] = False
    """whether data without a `hub.json` is refused"""
    needs_targets = False
    """whether targets that are all empty, as `aggdec binarize` writes them for sources alone, count as targets"""
    form: PromptTemplate | None = None
    """None: the data is no imported model's"""
    hidden: frozenset[int] = frozenset()
    """target symbols that are no part of an output's text: languages"""
    _warns_above: float = math.inf
    """tokens of a source"""

    def __init__(self, cfg: TaskConfig, *rest: Any, **named: Any) -> None:
        super().__init__(cfg, *rest, **named)
        settings = _settings(cfg)
        if settings is not None:
            template = settings.prompt_template(cfg.source_lang, cfg.target_lang)
            source = self.source_dictionary
            target = self.target_dictionary
            sides = zip(template, (source, source, target), strict=True)
            self.form = PromptTemplate(
                *([side.index(token) for token in tokens] for tokens, side in sides)
            )
            self.hidden = frozenset(map(target.index, settings.languages.values())) - {
                target.unk()
            }
            if settings.family in T5:
                self._warns_above = T5_LENGTH

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> FairseqTask:
        """As fairseq's; without options the languages are those of the data, or the model's.

        Raises `AggdecError` for an unknown language, and where a `hub.json` or a dictionary is missing.
        """
        if _settings(cfg) is None:
            if cls.needs_settings:
                raise AggdecError(
                    f"{cfg.data}: has no {FILE}; make it by aggdec binarize, or copy the model's {FILE}"
                )
            return super().setup_task(cfg, **kwargs)
        folder = Path(utils.split_paths(cfg.data)[0])
        cfg.source_lang, cfg.target_lang = language_pair(
            folder, cfg.source_lang, cfg.target_lang
        )
        sides = {"source": cfg.source_lang, "target": cfg.target_lang}
        paths = [
            str(dictionary_file(folder, side, language))
            for side, language in sides.items()
        ]
        loaded = {path: cls.load_dictionary(path) for path in dict.fromkeys(paths)}
        return cls(cfg, *(loaded[path] for path in paths))

    @property
    def added(self) -> int:
        """The number of a source's tokens beside its text and EOS."""
        return (
            0 if self.form is None else len(self.form.before) + len(self.form.after) - 1
        )

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> None:
        """As fairseq's; the limit of --truncate-source counts all tokens of a source."""
        # fairseq would pad before a text's form is there
        if self.form is not None and self.cfg.num_batch_buckets:
            raise AggdecError(
                "--num-batch-buckets: cannot be used on an imported model's data; leave it out"
            )
        super().load_dataset(split, *args, **kwargs)
        if self.form is None:
            return
        data = self.datasets[split]
        before, after, forced = self.form
        longest = self.cfg.max_source_positions if self.cfg.truncate_source else None
        data.src = TemplatedDataset(data.src, before, after, longest)
        data.sizes = data.src_sizes = data.src.sizes
        self._warn_of_long(data.src_sizes.tolist())
        if data.tgt is None or not (self.needs_targets or np.any(data.tgt.sizes > 1)):
            data.tgt = data.tgt_sizes = None  # empty ones would be scored
        else:
            data.tgt = TemplatedDataset(
                data.tgt, forced, [self.target_dictionary.eos()]
            )
            data.tgt_sizes = data.tgt.sizes
            data.sizes = np.vstack((data.src_sizes, data.tgt_sizes)).T

    def build_dataset_for_inference(
        self,
        src_tokens: list[Tensor],
        src_lengths: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> FairseqDataset:
        """As fairseq's, of texts, EOS last."""
        if self.form is not None:
            src_tokens = [
                _between(self.form.before, text[:-1], self.form.after)
                for text in src_tokens
            ]
            src_lengths = list(map(len, src_tokens))
            self._warn_of_long(src_lengths)
        return super().build_dataset_for_inference(
            src_tokens, src_lengths, *args, **kwargs
        )

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Namespace,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        **given: Any,
    ) -> SequenceGenerator:
        """As fairseq's; languages are left out of an output's text."""
        if self.hidden:
            extra_gen_cls_kwargs = {
                "symbols_to_strip_from_output": self.hidden,
                **(extra_gen_cls_kwargs or {}),
            }
        return super().build_generator(
            models, args, seq_gen_cls, extra_gen_cls_kwargs, **given
        )

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        **given: Any,
    ) -> list[list[Hypothesis]]:
        """As fairseq's; without a prefix, which would begin with them, the first tokens are the model's forced ones."""
        if prefix_tokens is None and self.form is not None and self.form.forced:
            source = sample["net_input"]["src_tokens"]
            prefix_tokens = source.new_tensor([self.form.forced]).repeat(len(source), 1)
        return super().inference_step(
            generator, models, sample, prefix_tokens=prefix_tokens, **given
        )

    def _warn_of_long(self, sizes: Iterable[int]) -> None:
        """Say once where a source is longer than any that the model was trained on."""
        longest = max(sizes, default=0)
        if longest > self._warns_above:
            logger.warning(
                f"a source of {longest:,} tokens is read whole, and T5 was trained on {T5_LENGTH}: check its output, "
                "or cut sources (longest of load, --longest; --truncate-source --max-source-positions)"
            )
            self._warns_above = math.inf


def _between(before: Sequence[int], text: Tensor, after: Sequence[int]) -> Tensor:
    return torch.cat([text.new_tensor(before), text, text.new_tensor(after)])


def _settings(cfg: TaskConfig) -> Settings | None:
    """Those of the data folder; None where it has none."""
    return Settings.found(Path(utils.split_paths(cfg.data)[0])) if cfg.data else None


@register_task("hub_translation", dataclass=TranslationConfig)
class HubTranslationTask(HubTemplateMixin, TranslationTask):
    """fairseq's search on an imported model's data."""

    needs_settings = True
