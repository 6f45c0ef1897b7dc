"""The precision of an engine's layers, and whether a token's bits may depend on its neighbours."""

from dataclasses import dataclass
from typing import Literal

Precision = Literal["model", "bf16", "int8"]
BF16_ON_CPU = "bf16 is for GPUs: on a CPU take --int8, which was as fast or faster, or leave it out"
"""an error's message"""


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of the engine's layers."""

    precision: Precision = "model"
    """Precision of matrix products with weights: the model's, bfloat16, or 8-bit integers with a scale for every
    row of weights and every row of inputs. Sums, norms and attention have the model's precision."""
    bit_exact: bool = False
    """Whether `same_bits` are wanted in the model's precision, for which this plugin's kernels are needed."""
    is_judged: bool = False
    """Whether a verifier judges the results, so that their rounding does not change the output."""

    @property
    def same_bits(self) -> bool:
        """Whether a token's result must not depend, to the last bit, on the other tokens of the batch.

        A low precision needs this, too: rounding to few bits turns a tiny difference into a whole step now and then,
        and verification would differ from one-token decoding far from ties.
        """
        return not self.is_judged and (self.bit_exact or self.precision != "model")

    def options(self) -> str:
        """The options of the command line, for messages; empty for the defaults."""
        precision = [] if self.precision == "model" else [f"--{self.precision}"]
        return " ".join([*precision, *["--bit-exact"] * self.bit_exact])


AS_THE_MODEL = Arithmetic()
