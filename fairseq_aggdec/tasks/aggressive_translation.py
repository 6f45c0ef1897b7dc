"""fairseq's tasks of translation, from text and from speech, with this plugin's decoding modes."""

from dataclasses import dataclass
from typing import Any

from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_aggdec.tasks.aggressive import AggressiveDecoding, DecodingOptions, aggressive
from fairseq_aggdec.tasks.data_folder import check_data

_OTHERS = (
    "translation_multi_simple_epoch",  # NLLB, M2M-100
    "translation_from_pretrained_bart",  # mBART
    "multilingual_translation",
    "speech_to_text",
)


@dataclass
class AggressiveTranslationConfig(TranslationConfig, DecodingOptions):
    """Options of the task, for the command line and for hydra."""


@register_task("aggressive_translation", dataclass=AggressiveTranslationConfig)
class AggressiveTranslationTask(AggressiveDecoding, TranslationTask):
    """Decodes checkpoints of the plain `translation` task."""

    cfg: AggressiveTranslationConfig

    @classmethod
    def setup_task(cls, cfg: AggressiveTranslationConfig, **kwargs: Any) -> "AggressiveTranslationTask":
        """As fairseq's; raises `AggdecError` for an option that makes no sense and a folder without dictionaries."""
        check_data(cfg)
        task: AggressiveTranslationTask = super().setup_task(cfg, **kwargs)
        return task


for _name in _OTHERS:
    register_task(f"aggressive_{_name}")(aggressive(TASK_REGISTRY[_name]))  # all have `add_args`
