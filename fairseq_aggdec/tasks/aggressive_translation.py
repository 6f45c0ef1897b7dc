"""fairseq's tasks of translation, from text and from speech, with this plugin's decoding modes."""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any

from fairseq.data import Dictionary
from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask

from fairseq_aggdec.tasks.aggressive import AggressiveDecoding, aggressive
from fairseq_aggdec.tasks.data_folder import check_data
from fairseq_aggdec.tasks.fairseq_options import DecodingOptions
from fairseq_aggdec.tasks.hub_translation import HubTemplateMixin

_OTHERS = (
    "translation_from_pretrained_bart",
    "multilingual_translation",
    "speech_to_text",
)
_NLLB_TAGS = ("<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>")
"""symbols of NLLB's models after those of the languages, for sources of training data"""


@dataclass
class AggressiveTranslationConfig(TranslationConfig, DecodingOptions):
    """Options of the task, for the command line and for hydra."""


@register_task("aggressive_translation", dataclass=AggressiveTranslationConfig)
class AggressiveTranslationTask(AggressiveDecoding, HubTemplateMixin, TranslationTask):
    """Decodes checkpoints of the plain `translation` task, and imported ones."""

    cfg: AggressiveTranslationConfig

    @classmethod
    def setup_task(
        cls, cfg: AggressiveTranslationConfig, **kwargs: Any
    ) -> "AggressiveTranslationTask":
        """As fairseq's; raises `AggdecError` for an option that makes no sense and a folder without dictionaries."""
        check_data(cfg)
        task: AggressiveTranslationTask = super().setup_task(cfg, **kwargs)
        return task


@register_task("aggressive_hub_translation", dataclass=AggressiveTranslationConfig)
class AggressiveHubTranslationTask(AggressiveTranslationTask):
    """Decodes imported models alone, whose data has a `hub.json`."""

    needs_settings = True


class MultiSimpleEpochTask(TranslationMultiSimpleEpochTask):
    """With an option of NLLB's command lines, which stock fairseq has only in its branch `nllb`."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        about = "NLLB: the dictionary has three more symbols after the languages"
        parser.add_argument(
            "--add-data-source-prefix-tags", action="store_true", help=about
        )

    def __init__(
        self,
        args: Namespace,
        langs: list[str],
        dicts: dict[str, Dictionary],
        training: bool,
    ) -> None:
        if getattr(args, "add_data_source_prefix_tags", False):
            for symbols in dicts.values():
                for tag in _NLLB_TAGS:
                    symbols.add_symbol(tag)
        super().__init__(args, langs, dicts, training)


register_task("aggressive_translation_multi_simple_epoch")(
    aggressive(MultiSimpleEpochTask)
)
for _name in _OTHERS:
    # all have `add_args`
    register_task(f"aggressive_{_name}")(aggressive(TASK_REGISTRY[_name]))
