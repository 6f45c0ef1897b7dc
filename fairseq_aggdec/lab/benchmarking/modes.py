"""The decoding modes that the benchmark can run, and their names on the command line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
_BLOCKS = tuple(name for name in _OWN if decoding_modes.MODES[name].drafter == decoding_modes.BLOCK_MODEL)
WITH_ORACLE = (*COPYING, *(name for name in _BLOCKS if decoding_modes.MODES[name].acceptance != "none"))
"""modes whose drafts, of a random model, are made from outputs"""
WHOLE = "+whole"
CUT = tuple(name for name in _OWN if "drafts" in decoding_modes.MODES[name].options)
"""modes whose drafts are cut to what saves time"""
_WITH_CRITERION = tuple(
    name for name in _OWN if (row := decoding_modes.MODES[name]).acceptance == "criterion" and not row.lossless
)
_KNOWN = (
    f"beam5, beam1 (any beam), {', '.join(_OWN)}, {', '.join(f'{name}:BETA:TOLERANCE' for name in _WITH_CRITERION)}, "
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
    full_drafts: bool = False
    """whether drafts are verified whole, by --drafts whole"""
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
        body, at, precision = name.partition("@")
        body, tilde, oracle = body.partition("~")
        peer = CTRANSLATE2 if body.startswith(f"{CTRANSLATE2}:") else None
        body = body.removeprefix(f"{CTRANSLATE2}:") if peer else body
        whole = body.endswith(WHOLE)
        body = body.removesuffix(WHOLE)
        kind, colon, rest = body.partition(":")
        try:
            settings: dict[str, int | float] = {}
            if body.startswith("beam"):
                kind, settings = "beam", {"beam": int(body.removeprefix("beam"))}
            elif kind == _BEAM and colon:
                beam, colon, budget = rest.partition(":")
                settings = {"beam": int(beam)}
                if colon:
                    settings["budget"] = int(budget)
            elif kind in _WITH_CRITERION and colon:
                beta, tolerance = rest.split(":")
                settings = {"top_beta": int(beta), "tolerance": float(tolerance)}
            elif kind == "blockwise" and colon:
                settings = {"top_beta": int(rest)}
            elif body not in _OWN:
                raise ValueError
            number = float(oracle) if tilde else None
        except ValueError:
            raise AggdecError(f"unknown mode {name}: choose from {_KNOWN}") from None
        if settings.get("beam", 1) < 1:
            raise AggdecError(f"mode {name}: a beam has at least 1")
        if settings.get("top_beta", 1) < 1 or not settings.get("tolerance", 0) >= 0:  # which not a number is not
            raise AggdecError(f"mode {name}: top-beta must be at least 1, and the tolerance at least 0")
        if settings.get("budget", 0) < 0:
            raise AggdecError(f"mode {name}: a pass scores 0 or more prefixes ahead")
        if at and precision not in PRECISIONS:
            raise AggdecError(f"mode {name}: unknown precision {precision}; choose from {', '.join(PRECISIONS)}")
        if whole and (peer or kind not in CUT):
            raise AggdecError(f"mode {name}: {WHOLE} is for modes whose drafts are cut otherwise: {', '.join(CUT)}")
        if peer and kind not in ("greedy", "beam"):
            raise AggdecError(f"mode {name}: {peer} decodes by greedy or beamN")
        if precision == "exact" and peer:
            raise AggdecError(f"mode {name}: {peer} has no bit-exact mode")
        if precision == "exact" and kind == _BEAM:
            raise AggdecError(f"mode {name}: there is no bit-exact beam search")
        if kind == "beam" and not peer and precision in ("int8", "exact"):
            raise AggdecError(f"mode {name}: fairseq's own search has no {precision}")
        if tilde and kind not in WITH_ORACLE:
            raise AggdecError(f"mode {name}: ~ sets the oracle of {', '.join(WITH_ORACLE)} only")
        chosen = precision or None
        return cls(
            name, kind, peer=peer, precision=chosen, full_drafts=whole, oracle=number,
            **settings,  # type: ignore[arg-type]
        )  # fmt: skip

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
