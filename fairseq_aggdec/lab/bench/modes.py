"""The decoding modes that the benchmark can run, and their names on the command line."""

import re
from collections.abc import Sequence
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

_OWN = {
    name: mode
    for name, mode in MODES.items()
    if not mode.has_beam and not mode.alternatives
}
WHOLE = "+whole"
CUT = tuple(name for name, mode in _OWN.items() if mode.reads("drafts"))
"""modes whose drafts are cut to what saves time"""
_WITH_CRITERION = (
    re.escape(decoding_modes.IAD_PLUS),
    re.escape(decoding_modes.GAD_PLUS),
)
_FORMS = (
    rf"(?P<decoding>{BEAM})(?P<beam>[1-9]\d*)",
    rf"(?P<decoding>{decoding_modes.AGGRESSIVE_BEAM}):(?P<beam>[1-9]\d*)(:(?P<budget>\d+))?",
    rf"(?P<decoding>{decoding_modes.BLOCKWISE})(:(?P<rank>[1-9]\d*))?",
    rf"(?P<decoding>{'|'.join(_WITH_CRITERION)})(:(?P<rank>[1-9]\d*):(?P<distance>\d+(\.\d+)?))?",
    rf"(?P<decoding>{decoding_modes.SPECULATIVE}):(?P<drafter>[^:]+)",
    rf"(?P<decoding>{'|'.join(map(re.escape, _OWN))})",
)
"""the names of modes without peer, +whole and precision"""
KNOWN = (
    f"beam5, beam1 (any beam), {', '.join(_OWN)}, iad++:BETA:TOLERANCE, gad++:BETA:TOLERANCE, "
    f"blockwise:BETA, speculative:DRAFTER-PATH, {' and '.join(CUT)} with {WHOLE}, aggressive-beam:5, "
    "aggressive-beam:5:PREFIXES (at most PREFIXES scored ahead in a pass), ctranslate2:greedy, ctranslate2:beam5, each "
    "with @fp32, @fp16, @bf16, @int8 or @exact (--bit-exact; on a GPU in fp16) where wanted"
)
"""the modes, for help texts and errors"""


_OTHER = decoding_modes.Mode(
    "nat", "a non-autoregressive model of fairseq", acceptance="none"
)


@dataclass(frozen=True)
class NatPeer:
    """One of fairseq's non-autoregressive models, and its decoding options."""

    label: str
    path: str
    iterations: int = 10
    """largest number of decoder passes, the first included: fairseq's --iter-decode-max-iter plus 1"""
    length_beam: int = 1
    """number of lengths that are tried: fairseq's --iter-decode-with-beam"""

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
        if label in _OWN or re.fullmatch(r"beam\d*", label):
            raise AggdecError(
                f"--nat-peer {text}: {label} is a mode's name; give the model another label"
            )
        return cls(label, path, *(int(number) for number in numbers if number))

    @property
    def option(self) -> str:
        """The option as error messages name it."""
        return f"--nat-peer {self.label}"


@dataclass(frozen=True)
class Mode:
    """One way to decode."""

    name: str
    decoding: str
    """a value of --decoding; or `beam` for fairseq's own beam search or that of `peer`, `nat` for the model of `nat`"""
    beam: int = 1
    """width of the search"""
    peer: str | None = None
    """another program that decodes, such as `ctranslate2`"""
    precision: str | None = None
    """one of `PRECISIONS`; None for the precision of the benchmark"""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """further fields of `Decoding`, in place of those of the benchmark"""
    budget: int | None = None
    """prefixes that aggressive-beam scores ahead in a pass, 0 for plain beam search; None for as many as pay"""
    nat: NatPeer | None = None
    """a non-autoregressive model that decodes instead of the checkpoint"""

    @classmethod
    def parse(cls, name: str) -> "Mode":
        """Read [PEER:]MODE[:NUMBER...][+whole][@PRECISION]; the number of `beam` has no colon.

        Raises:
            AggdecError: no such mode.
        """
        rest, at, precision = name.partition("@")
        whole, peer = rest.endswith(WHOLE), rest.startswith(f"{CTRANSLATE2}:")
        rest = rest.removeprefix(f"{CTRANSLATE2}:").removesuffix(WHOLE)
        match = next(
            filter(None, (re.fullmatch(form, rest, re.ASCII) for form in _FORMS)), None
        )
        decoding = match["decoding"] if match else ""
        row = MODES.get(decoding, _OTHER)
        if (
            match is None
            or (at and precision not in PRECISIONS)
            or (whole and (peer or decoding not in CUT))
            or (peer and not (row.is_greedy or row.is_fairseqs))
        ):
            raise AggdecError(f"unknown mode {name}: choose from {KNOWN}")
        given = match.groupdict()
        if precision == "exact" and (peer or row.has_beam):
            raise AggdecError(
                f"mode {name}: only this plugin's modes without a beam can be bit-exact"
            )
        if precision == "int8" and row.is_fairseqs and not peer:
            raise AggdecError(f"mode {name}: fairseq's own search has no int8")
        numbers = [
            kind(given[group])
            for group, kind in (("rank", int), ("distance", float))
            if given.get(group)
        ]
        options: dict[str, Any] = dict(
            zip(decoding_modes.CRITERION_OPTIONS, numbers, strict=False)
        )
        if given.get("drafter"):
            options["drafter"] = given["drafter"]
        if whole:
            options["drafts"] = "whole"
        budget = None if given.get("budget") is None else int(given["budget"])
        peer_name = CTRANSLATE2 if peer else None
        return cls(
            name,
            decoding,
            int(given.get("beam") or 1),
            peer_name,
            precision or None,
            options,
            budget,
        )

    @property
    def row(self) -> decoding_modes.Mode:
        """The value of --decoding with its properties; of a non-autoregressive model one that has none of them."""
        return MODES.get(self.decoding, _OTHER)

    def having(self, **options: Any) -> "Mode":
        """The same with these fields of `Decoding`."""
        return replace(self, options={**self.options, **options})

    @property
    def search(self) -> str:
        """The name without the precision."""
        return self.name.partition("@")[0]

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
    modes: str, peers: str = "", nat_peers: Sequence[str] = ()
) -> list[Mode]:
    """Read comma-separated lists of modes, and of keys of `PEERS` or modes of peers, and texts for `NatPeer.parse`.

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
    return [
        *map(Mode.parse, names),
        *(Mode(peer.label, _OTHER.name, nat=peer) for peer in others),
    ]
