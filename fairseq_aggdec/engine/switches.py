"""Switches of what has not run on a GPU: off unless the environment variable AGGDEC_GPU names them."""

import os

from fairseq_aggdec.errors import AggdecError

SWITCHES = ("loops",)
"""`loops`: see `device_loops`"""


def is_on(switch: str) -> bool:
    """Whether AGGDEC_GPU names a switch, as `AGGDEC_GPU=loops` does."""
    named = set(filter(None, os.environ.get("AGGDEC_GPU", "").split(",")))
    if unknown := named.difference(SWITCHES):
        raise AggdecError(f"AGGDEC_GPU={','.join(sorted(unknown))}: give some of {', '.join(SWITCHES)}, or none")
    return switch in named
