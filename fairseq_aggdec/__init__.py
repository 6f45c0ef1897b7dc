"""fairseq_aggdec: lossless acceleration of sequence-to-sequence decoding, as a fairseq plugin.

`--user-dir fairseq_aggdec`, or this import in a program, before fairseq's or after it, makes the tasks and options
known to fairseq. Only a program that imports a module of this package first, and then fairseq without `fairseq_cli`,
must call `register`. Importing the package alone stays cheap: fairseq and torch are loaded only where they are needed.
"""

import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairseq_aggdec.model import load as load
    from fairseq_aggdec.tasks.aggressive import aggressive as aggressive

__version__ = "0.1.0"


def register() -> None:
    """Make the plugin known to fairseq, and mend fairseq where it needs it (`compat`). Repeating it is harmless."""
    from fairseq_aggdec.compat.install import install
    from fairseq_aggdec.installed import warn_of_two_fairseqs

    warn_of_two_fairseqs()
    install()
    import fairseq_aggdec.criterions.blockwise_loss
    import fairseq_aggdec.criterions.glancing_block_loss
    import fairseq_aggdec.hub.tokenizers
    import fairseq_aggdec.models.architectures
    import fairseq_aggdec.models.blockwise_transformer
    import fairseq_aggdec.models.hub_t5
    import fairseq_aggdec.models.hub_transformer
    import fairseq_aggdec.models.nar_drafter
    import fairseq_aggdec.tasks.aggressive_translation
    import fairseq_aggdec.tasks.block_drafting
    import fairseq_aggdec.tasks.super_resolution
    import fairseq_aggdec.text.tokenizer  # noqa: F401


def __getattr__(name: str) -> Any:
    """`from fairseq_aggdec import load` imports fairseq and torch, which the package alone does not."""
    modules = {"load": "model", "aggressive": "tasks.aggressive"}
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    root = logging.getLogger()
    handlers = list(root.handlers)
    level = root.level
    disabled = root.manager.disable
    logging.disable(logging.INFO)
    register()  # first: a module that is half imported cannot be registered
    module = import_module(f"{__name__}.{modules[name]}")
    # a module of fairseq makes all that import it log to stderr
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.disable(disabled)
    return getattr(module, name)


class _Awaiting:
    """Registers the plugin where a program imports fairseq after this package; finds no module itself."""

    def find_spec(self, name: str, *_: Any) -> None:
        # the last part of fairseq that fairseq imports; it may have been wanted by a half imported module of ours
        is_complete = name == "fairseq.model_parallel" and not any(
            loaded.startswith(f"{__name__}.") for loaded in sys.modules
        )
        if is_complete or name == "fairseq_cli":
            register()


# fairseq is importing its user directory, or a program has imported it
if "fairseq" in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _Awaiting())
