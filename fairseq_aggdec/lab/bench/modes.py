"""The decoding modes that the benchmark can run, and their names on the command line."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import modes as decoding_modes
from fairseq_aggdec.generation.modes import BEAM, GREEDY, MODES
from fairseq_aggdec.generation.options import Decoding

PRECISIONS = ("fp32", "fp16", "bf16", "int8", "exact")
"""`exact` is --bit-exact, in fp32 on a CPU and in fp16 on a GPU"""
CTRANSLATE2 = "ctranslate2"
PEERS = {
    CTRANSLATE2: tuple(
        f"{CTRANSLATE2}:{how}"
        for how in (GREEDY, f"{GREEDY}@int8", "beam5", "beam5@int8")
    )
}
"""the modes that a name in --peers stands for"""

_WITHOUT_BEAM = {
    name: mode
    for name, mode in MODES.items()
    if not mode.has_beam and not mode.alternatives
}
"""modes of this plugin without a beam"""
WHOLE = "+whole"
CUT = tuple(name for name, mode in _WITHOUT_BEAM.items() if mode.reads("drafts"))
"""modes whose drafts are cut to what saves time"""
_BETA, _TAU = decoding_modes.CRITERION_OPTIONS
_RANK = rf"(?P<{_BETA}>[1-9]\d*)"
_FORMS = (
    rf"(?P<decoding>{BEAM})(?P<beam>[1-9]\d*)",
    rf"(?P<decoding>{decoding_modes.AGGRESSIVE_BEAM}):(?P<beam>[1-9]\d*)(:(?P<budget>\d+))?",
    rf"(?P<decoding>{decoding_modes.BLOCKWISE})(:{_RANK})?",
    rf"(?P<decoding>[ig]ad\+\+)(:{_RANK}:(?P<{_TAU}>\d+(\.\d+)?))?",
    rf"(?P<decoding>{decoding_modes.SPECULATIVE}):(?P<drafter>[^:]+)",
    rf"(?P<decoding>{'|'.join(map(re.escape, _WITHOUT_BEAM))})",
)
"""the names of modes without peer, +whole and precision"""
_OPTIONS: dict[str, Callable[[str], Any]] = {_BETA: int, _TAU: float, "drafter": str}
"""fields of `Decoding` that a name may give"""
KNOWN = (
    f"beam5, beam1 (any beam), {', '.join(_WITHOUT_BEAM)}, iad++:BETA:TOLERANCE, gad++:BETA:TOLERANCE, "
    f"blockwise:BETA, speculative:DRAFTER-PATH, {' and '.join(CUT)} with {WHOLE}, aggressive-beam:5, "
    "aggressive-beam:5:PREFIXES (at most PREFIXES scored ahead in a pass), ctranslate2:greedy, ctranslate2:beam5, each "
    "with @fp32, @fp16, @bf16, @int8 or @exact (--bit-exact; on a GPU in fp16) where wanted"
)
"""the modes, for help texts and errors"""


_NAT = decoding_modes.Mode(
    "nat", "a non-autoregressive model of fairseq", acceptance="none"
)


@dataclass(frozen=True)
class NatPeer:
    """One of fairseq's non-autoregressive models, and its decoding options."""

    label: str
    path: str
    iterations: int = 10
    """the most decoder passes, the first included: fairseq's --iter-decode-max-iter plus 1"""
    length_beam: int = 1
    """how many lengths are tried: fairseq's --iter-decode-with-beam"""

    @classmethod
    def parse(cls, text: str) -> "NatPeer":
        """Read LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]].

        Raises:
            AggdecError: the text has another form, or the label is a mode's name.
        """
        match = re.fullmatch(
            r"([\w.+-]+)=([^:]+)(?::([1-9]\d*))?(?::([1-9]\d*))?", text, re.ASCII
        )
        if match is None:
            raise AggdecError(
                f"--nat-peer {text}: write LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]], such as cmlm=model.pt:10:5; PATH is "
                "one model's, without a colon"
            )
        label, path, *numbers = match.groups()
        if label in _WITHOUT_BEAM or re.fullmatch(r"beam\d*", label):
            raise AggdecError(
                f"--nat-peer {text}: {label} is a mode's name; give the model another label"
            )
        return cls(label, path, *(int(number) for number in numbers if number))

    @property
    def option(self) -> str:
        """The option as error messages name it."""
        return f"--nat-peer {self.label}"


@dataclass(frozen=True)
class ModeSpec:
    """What is decoded how: a mode of this plugin or another program, with its settings and its precision."""

    name: str
    decoding: str
    """a value of --decoding; or `beam` for fairseq's beam search or that of `peer`, `nat` for the model of `nat`"""
    beam: int = 1
    """width of the search"""
    peer: str | None = None
    """another program that decodes, such as `ctranslate2`"""
    precision: str = "fp32"
    """one of `PRECISIONS`"""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """further fields of `Decoding`"""
    budget: int | None = None
    """prefixes that aggressive-beam scores ahead in a pass, 0 for plain beam search; None for as many as pay"""
    nat: NatPeer | None = None
    """a non-autoregressive model that decodes instead of the checkpoint"""

    @classmethod
    def parse(cls, name: str, precision: str = "fp32") -> "ModeSpec":
        """Read [PEER:]MODE[:VALUE...][+whole][@PRECISION]; the width of `beam` has no colon.

        `precision`: where the name does not say it.

        Raises:
            AggdecError: no such mode.
        """
        # the path of a drafter may have an @, too
        found = re.fullmatch(r"(.*)@([^/@]*)", name)
        rest, given_precision = found.groups() if found else (name, "")
        has_peer = rest.startswith(f"{CTRANSLATE2}:")
        is_whole = rest.endswith(WHOLE)
        rest = rest.removeprefix(f"{CTRANSLATE2}:").removesuffix(WHOLE)
        matches = (re.fullmatch(form, rest, re.ASCII) for form in _FORMS)
        given = next((match.groupdict() for match in matches if match), {})
        decoding = given.get("decoding", "")
        row = MODES.get(decoding, _NAT)
        # what no mode is called
        if (
            not given
            or (found and given_precision not in PRECISIONS)
            or (is_whole and (has_peer or decoding not in CUT))
            or (has_peer and not (row.is_greedy or row.is_fairseqs))
        ):
            raise AggdecError(f"unknown mode {name}: choose from {KNOWN}")
        # precisions that a search lacks
        if given_precision == "exact" and (has_peer or row.has_beam):
            raise AggdecError(
                f"mode {name}: only this plugin's modes without a beam can be bit-exact"
            )
        if given_precision == "int8" and row.is_fairseqs and not has_peer:
            raise AggdecError(f"mode {name}: fairseq's own search has no int8")
        options = {
            option: read(given[option])
            for option, read in _OPTIONS.items()
            if given.get(option)
        }
        if is_whole:
            options["drafts"] = "whole"
        return cls(
            name,
            decoding,
            int(given.get("beam") or 1),
            CTRANSLATE2 if has_peer else None,
            given_precision or precision,
            options,
            int(given["budget"]) if given.get("budget") else None,
        )

    @property
    def row(self) -> decoding_modes.Mode:
        """The value of --decoding with its properties; of a non-autoregressive model one that has none of them."""
        return MODES.get(self.decoding, _NAT)

    def having(self, **options: Any) -> "ModeSpec":
        """The same with these fields of `Decoding`, those that the mode reads and its name does not give."""
        read = {name: value for name, value in options.items() if self.row.reads(name)}
        return replace(self, options={**read, **self.options})

    @property
    def search(self) -> str:
        """The name without the precision."""
        return re.sub("@[^/@]*$", "", self.name)

    def decodes_as(self, other: "ModeSpec") -> bool:
        """Whether both search alike in the same precision."""
        return (self.search, self.precision) == (other.search, other.precision)

    @property
    def is_greedy(self) -> bool:
        """Whether it is this plugin's `greedy`, in whatever precision."""
        return self.row.is_greedy and self.peer is None

    @property
    def is_lossless(self) -> bool:
        """Whether its outputs are promised to be those of fairseq's search, or of `greedy` in the same precision."""
        return (
            self.implementation == "fairseq_aggdec"
            and Decoding(self.decoding, **self.options).is_lossless
        )

    @property
    def implementation(self) -> str:
        """The program that decodes: `fairseq_aggdec`, `fairseq` or a peer."""
        return self.peer or (
            "fairseq" if self.row.is_fairseqs or self.nat else "fairseq_aggdec"
        )


def parse_modes(
    modes: str,
    peers: str = "",
    nat_peers: Sequence[str] = (),
    precision: str | None = None,
) -> list[ModeSpec]:
    """Read comma-separated lists of modes, and of keys of `PEERS` or modes of peers, and texts for `NatPeer.parse`.

    `precision`: of modes whose names do not say it; None: fp32.

    Raises:
        AggdecError: an unknown or malformed name, the same one twice, or none at all.
    """
    names = [name.strip() for name in modes.split(",") if name.strip()]
    for peer in (name.strip() for name in peers.split(",") if name.strip()):
        names += PEERS.get(peer, (peer,))
    others = [NatPeer.parse(text) for text in nat_peers]
    labels = [*names, *(peer.label for peer in others)]
    if not labels:
        raise AggdecError("--modes: none given")
    for name in labels:
        if labels.count(name) > 1:
            raise AggdecError(f"--modes, --peers and --nat-peer: {name} is given twice")
    kept = precision or "fp32"
    return [
        *(ModeSpec.parse(name, kept) for name in names),
        *(ModeSpec(peer.label, _NAT.name, precision=kept, nat=peer) for peer in others),
    ]
