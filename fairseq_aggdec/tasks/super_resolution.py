"""`--task super_resolution`: its options. The task itself is in configs/shared/super_resolution of a checkout."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.tasks import FairseqTask, register_task

from fairseq_aggdec.checkout import load_part
from fairseq_aggdec.tasks.aggressive_translation import AggressiveTranslationConfig


@dataclass
class SuperResolutionConfig(AggressiveTranslationConfig):
    """Options of the task beside those of decoding; `data` is an .npz file or a folder of images."""

    input_size: int = field(
        default=8, metadata={"help": "pixels on a side of the small image"}
    )
    output_size: int = field(
        default=32,
        metadata={
            "help": "pixels on a side of the large image: a multiple of --input-size"
        },
    )
    grey: bool = field(
        default=False, metadata={"help": "one channel instead of red, green and blue"}
    )
    valid_images: int = field(
        default=100, metadata={"help": "number of different images in the split valid"}
    )
    test_images: int = field(
        default=100, metadata={"help": "number of different images in the split test"}
    )
    coordinate_positions: bool = field(
        default=False,
        metadata={
            "help": "training: initialise learned position embeddings as sines of row and column"
        },
    )


@register_task("super_resolution", dataclass=SuperResolutionConfig)
class SuperResolution(FairseqTask):
    """The task's name for fairseq, which imports the task when it is used."""

    @classmethod
    def setup_task(cls, cfg: SuperResolutionConfig, **kwargs: Any) -> FairseqTask:
        """The task; raises `AggdecError` where the plugin was installed without its checkout."""
        task: FairseqTask = load_part(
            "super_resolution.task"
        ).SuperResolutionTask.setup_task(cfg)
        return task
