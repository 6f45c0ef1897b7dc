"""All functions of fairseq that this plugin replaces, and their replacements."""

from types import SimpleNamespace

from fairseq import (
    checkpoint_utils,
    file_utils,
    iterative_refinement_generator,
    options,
    utils,
)
from fairseq.data import data_utils
from fairseq.dataclass.constants import ChoiceEnum
from fairseq.distributed import utils as distributed_utils
from fairseq.models.bart import BARTModel
from fairseq.models.ema import EMA
from fairseq.models.nat import FairseqNATModel, levenshtein_transformer
from fairseq.models.transformer import TransformerConfig
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation_from_pretrained_bart import (
    TranslationFromPretrainedBARTTask,
)

from fairseq_aggdec.compat import batches, checkpoints, command_line, nat, training
from fairseq_aggdec.errors import install_excepthook


def install() -> None:
    """Replace the functions in the running process. A second call changes nothing."""
    if getattr(checkpoint_utils, "mended_by_aggdec", False):
        return
    checkpoint_utils.load_checkpoint_to_cpu = checkpoints.checked(
        checkpoint_utils.load_checkpoint_to_cpu
    )
    checkpoint_utils.load_ema_from_checkpoint = checkpoints.checked(
        checkpoint_utils.load_ema_from_checkpoint
    )
    load = checkpoint_utils.load_model_ensemble_and_task
    checkpoint_utils.load_model_ensemble_and_task = checkpoints.with_reasons(load)
    file_utils.tarfile = SimpleNamespace(open=checkpoints.open_archive)
    distributed_utils._broadcast_object_slow = training.broadcast_object
    data_utils.batch_by_size = batches.with_last_batch(data_utils.batch_by_size)
    BARTModel.__init__ = training.with_task_name(BARTModel.__init__)
    # which it reads and nowhere sets
    TranslationFromPretrainedBARTTask.args = property(lambda task: task.cfg)
    EMA.__init__ = training.copying_frozen_weights(EMA.__init__)
    FairseqTask.train_step = training.without_fused_attention(FairseqTask.train_step)
    FairseqTask.get_batch_iterator = batches.with_resumed_batches(
        FairseqTask.get_batch_iterator
    )
    utils.get_activation_fn = training.without_classes(utils.get_activation_fn)
    activations = ChoiceEnum([*utils.get_available_activation_fns(), "swish"])
    TransformerConfig.__dataclass_fields__["activation_fn"].type = activations
    FairseqNATModel.build_model = nat.with_own_options(
        FairseqNATModel.build_model.__func__
    )
    iterative_refinement_generator.np = SimpleNamespace(argmax=nat.argmax)
    levenshtein_transformer._fill = nat.filling_missing_rows(
        levenshtein_transformer._fill
    )
    options.parse_args_and_arch = command_line.with_checks(options.parse_args_and_arch)
    checkpoint_utils.mended_by_aggdec = True
    install_excepthook()
