"""The decoding modes that the benchmark can run, and their names on the command line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation import modes as decoding_modes

PRECISIONS = ("fp32", "fp16", "bf16", "int8", "exact")
"""`exact` is fp32 with --bit-exact"""
CTRANSLATE2 = "ctranslate2"
PEERS = {CTRANSLATE2: tuple(f"{CTRANSLATE2}:{how}" for how in ("greedy", "greedy@int8", "beam5", "beam5@int8"))}
"""the modes that a name in --peers stands for"""

_BEAM = "aggressive-beam"
_OWN = tuple(name for name, mode in decoding_modes.MODES.items() if not mode.beam and not mode.stands_for)
COPYING = tuple(name for name in _OWN if decoding_modes.MODES[name].drafter == decoding_modes.COPIES)
"""modes that copy their drafts"""
WITH_ORACLE = tuple(
    name
    for name in _OWN
    if (row := decoding_modes.MODES[name]).drafter in (decoding_modes.COPIES, decoding_modes.BLOCK_MODEL)
    and row.acceptance != "none"
)
"""modes whose drafts, of a random model, are made from outputs"""
WHOLE = "+whole"
CUT = tuple(name for name in _OWN if "drafts" in decoding_modes.MODES[name].options)
"""modes whose drafts are cut to what saves time"""
_NUMBERS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "beam": (("beam",), (1,)),
    _BEAM: (("beam", "budget"), (1, 2)),
    "blockwise": (("top_beta",), (0, 1)),
    "iad++": (("top_beta", "tolerance"), (0, 2)),
    "gad++": (("top_beta", "tolerance"), (0, 2)),
}
"""fields of `Mode` that the numbers in a name set, and how many numbers there may be"""
_NAME = re.compile(
    rf"(?P<peer>{CTRANSLATE2}:)?(?P<kind>beam(?=\d)|(?:{'|'.join(map(re.escape, (_BEAM, *_OWN)))})(?=[:+~@]|$))"
    r"(?P<numbers>\d*(?::-?[\d.]+)*)(?P<whole>\+whole)?(?:~(?P<oracle>[\d.]+))?(?:@(?P<precision>\w+))?",
    re.ASCII,
)
_KNOWN = (
    f"beam5, beam1 (any beam), {', '.join(_OWN)}, iad++:BETA:TOLERANCE, gad++:BETA:TOLERANCE, "
    f"blockwise:BETA, {' and '.join(CUT)} with +whole, aggressive-beam:5, aggressive-beam:5:PREFIXES, "
    "ctranslate2:greedy, ctranslate2:beam5, each with @fp32, @fp16, @bf16, @int8 or @exact (bit-exact) where wanted"
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
        match = re.fullmatch(r"(?P<label>[\w.+-]+)=(?P<path>[^:]+)(:(?P<passes>\d+)(:(?P<beam>\d+))?)?", text, re.ASCII)
        if match is None:
            raise AggdecError(
                f"--nat-peer {text}: write LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]], such as cmlm=model.pt:10:5; PATH is "
                "one model's, without a colon"
            )
        iterations, length_beam = int(match["passes"] or cls.iterations), int(match["beam"] or cls.length_beam)
        if min(iterations, length_beam) < 1:
            raise AggdecError(f"--nat-peer {text}: iterations and length beam must be at least 1")
        if match["label"] in _OWN or re.fullmatch(r"beam\d*", match["label"]):
            raise AggdecError(f"--nat-peer {text}: {match['label']} is a mode's name; give the model another label")
        return cls(match["label"], match["path"], iterations, length_beam)

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
    top_beta: int | None = None
    """β of gad++, iad++ and blockwise; None for the default"""
    tolerance: float | None = None
    """τ of gad++ and iad++; None for the default"""
    peer: str | None = None
    """another program that decodes, such as `ctranslate2`"""
    precision: str | None = None
    """one of `PRECISIONS`; None for the precision of the benchmark"""
    drafts: str = "auto"
    """a value of --drafts"""
    oracle: float | None = None
    """quality of a random model's drafts: mean accepted tokens (gad, gad++) or edit ratio (`COPYING`); None for that of
    the benchmark"""
    budget: int | None = None
    """prefixes that aggressive-beam scores ahead in a pass, 0 for plain beam search; None for as many as pay"""
    nat: NatPeer | None = None
    """a non-autoregressive model that decodes instead of the checkpoint"""

    @classmethod
    def parse(cls, name: str) -> "Mode":
        """Read [PEER:]MODE[+whole][~ORACLE][@PRECISION].

        Raises:
            AggdecError: no such mode.
        """
        try:
            match = _NAME.fullmatch(name)
            if match is None:
                raise ValueError
            kind, peer, precision = match["kind"], match["peer"], match["precision"]
            fields, counts = _NUMBERS.get(kind, ((), (0,)))
            texts = [text for text in match["numbers"].split(":") if text]
            if len(texts) not in counts:
                raise ValueError
            numbers: dict[str, Any] = {
                field: float(text) if field == "tolerance" else int(text)
                for field, text in zip(fields, texts, strict=False)
            }
            oracle = None if match["oracle"] is None else float(match["oracle"])
        except ValueError:
            raise AggdecError(f"unknown mode {name}: choose from {_KNOWN}") from None
        beta, tolerance = numbers.get("top_beta", 1), numbers.get("tolerance", 0)
        wrong = {
            "a beam has at least 1": numbers.get("beam", 1) < 1,
            "top-beta must be at least 1, and the tolerance at least 0": beta < 1 or tolerance < 0,
            "a pass scores 0 or more prefixes ahead": numbers.get("budget", 0) < 0,
            f"unknown precision {precision}; choose from {', '.join(PRECISIONS)}": precision not in (None, *PRECISIONS),
            f"{WHOLE} is for modes whose drafts are cut otherwise: {', '.join(CUT)}": match["whole"]
            and (peer or kind not in CUT),
            f"{CTRANSLATE2} decodes by greedy or beamN": peer and kind not in ("greedy", "beam"),
            f"{CTRANSLATE2} has no bit-exact mode": peer and precision == "exact",
            "there is no bit-exact beam search": kind == _BEAM and precision == "exact",
            f"fairseq's own search has no {precision}": kind == "beam" and not peer and precision in ("int8", "exact"),
            f"~ sets the oracle of {', '.join(WITH_ORACLE)} only": oracle is not None and kind not in WITH_ORACLE,
        }
        for reason, is_so in wrong.items():
            if is_so:
                raise AggdecError(f"mode {name}: {reason}")
        drafts = "whole" if match["whole"] else "auto"
        return cls(
            name, kind, peer=CTRANSLATE2 if peer else None, precision=precision, drafts=drafts, oracle=oracle, **numbers
        )

    @property
    def lossless(self) -> bool:
        """Whether its outputs are promised to be those of `greedy` in the same precision."""
        if self.implementation != "fairseq_aggdec" or self.decoding == _BEAM:
            return False
        if self.top_beta == 1 or self.tolerance == 0:  # with either, only the verifier's best token passes
            return True
        return decoding_modes.MODES[self.decoding].lossless and self.top_beta is None

    @property
    def searches_as(self) -> "Mode | None":
        """Of a beam search that is to have fairseq's n-best lists, fairseq's; None for other modes."""
        return Mode.parse(f"beam{self.beam}") if self.decoding == _BEAM else None

    @property
    def implementation(self) -> str:
        """The program that decodes: `fairseq_aggdec`, `fairseq` or a peer."""
        return self.peer or ("fairseq" if self.decoding == "beam" or self.nat else "fairseq_aggdec")


def parse_modes(modes: str, peers: str = "", nat_peers: Sequence[str] = ()) -> list[Mode]:
    """Read comma-separated lists of modes.

    Args:
        modes: names for `Mode.parse`.
        peers: keys of `PEERS`, or modes of peers.
        nat_peers: texts for `NatPeer.parse`.

    Raises:
        AggdecError: an unknown or malformed name, the same one twice, or none at all.
    """
    names = [name.strip() for name in modes.split(",") if name.strip()]
    for peer in (name.strip() for name in peers.split(",") if name.strip()):
        if peer not in PEERS and peer.partition(":")[0] not in PEERS:
            raise AggdecError(f"--peers {peer}: unknown; choose from {', '.join(PEERS)}")
        names += PEERS.get(peer, (peer,))
    others = [NatPeer.parse(text) for text in nat_peers]
    if not names and not others:
        raise AggdecError("--modes: none given")
    for option, given in (("--modes", names), ("--nat-peer", [peer.label for peer in others])):
        for name in given:
            if given.count(name) > 1:
                raise AggdecError(f"{option}: {name} is given twice")
    return [*map(Mode.parse, names), *(Mode(peer.label, "nat", nat=peer) for peer in others)]
