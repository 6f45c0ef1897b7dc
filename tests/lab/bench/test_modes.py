"""Names of modes and of non-autoregressive models on the command line."""

import re

import pytest

from fairseq_aggdec.lab.bench.modes import ModeSpec, NatPeer, parse_modes
from tests.support.helpers import refused_with

WHOLE = {"drafts": "whole"}
PEER = {"peer": "ctranslate2", "decoding": "beam"}


@pytest.mark.parametrize(
    "name, options, fields",
    [
        ("beam4", {}, {"decoding": "beam", "beam": 4}),
        ("iad", {}, {}),
        ("gad+whole@int8", WHOLE, {"precision": "int8"}),
        (
            "gad++:5:3.5@exact",
            {"top_beta": 5, "tolerance": 3.5},
            {"precision": "exact"},
        ),
        ("speculative:a/b.pt+whole", {"drafter": "a/b.pt", **WHOLE}, {}),
        ("blockwise:2", {"top_beta": 2}, {}),
        ("aggressive-beam:4", {}, {"beam": 4}),
        ("aggressive-beam:4:0", {}, {"beam": 4, "budget": 0}),
        ("ctranslate2:beam5@fp16", {}, {**PEER, "beam": 5, "precision": "fp16"}),
    ],
)
def test_a_mode_carries_its_settings(name: str, options: dict, fields: dict) -> None:
    decoding = re.split("[:@]|.whole", name)[0]
    expected = {"decoding": decoding, "options": options, "precision": "bf16"} | fields
    assert ModeSpec.parse(name, "bf16") == ModeSpec(name, **expected)


@pytest.mark.parametrize(
    "name",
    "fast beamx beam0 beam:5 gad++:3 iad++:0:2 gad++:5:-1 aggressive-beam:5: aggressive-beam:5:-1 iad@fp8 iad@ "
    "gad+whole+whole gad+++whole nmt:greedy ctranslate2:iad".split(),
)
def test_malformed_modes_are_refused(name: str) -> None:
    with refused_with(f"unknown mode {re.escape(name)}: choose"):
        ModeSpec.parse(name)


def test_peers_come_after_the_modes() -> None:
    nat_peers = ["nat=a/nat.pt:1", "cmlm-4=b=c.pt:4:5", "levt=levt.pt"]
    modes = parse_modes("greedy", "ctranslate2", nat_peers)
    names = [mode.name.removeprefix("ctranslate2:") for mode in modes]
    others = "greedy greedy@int8 beam5 beam5@int8 nat cmlm-4 levt"
    assert names == ["greedy", *others.split()]
    peers = [
        NatPeer("nat", "a/nat.pt", 1, 1),
        NatPeer("cmlm-4", "b=c.pt", 4, 5),
        NatPeer("levt", "levt.pt", 10, 1),
    ]
    assert [mode.nat for mode in modes] == [*[None] * 5, *peers]
    (one,) = parse_modes("", "ctranslate2:beam2")
    assert one.name == "ctranslate2:beam2"


@pytest.mark.parametrize(
    "modes, peers, reason",
    [
        ("beam5@int8", "", "mode beam5@int8: fairseq's own search has no int8"),
        ("aggressive-beam:5@exact", "", "modes without a beam can be bit-exact"),
        ("ctranslate2:greedy@exact", "", "modes without a beam can be bit-exact"),
        ("iad", "nat=a.pt:ten", "write LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]]"),
        ("iad", "nat=a.pt:0", "such as cmlm=model.pt:10:5"),
        ("iad", "greedy=a.pt", "greedy is a mode's name; give the model another label"),
        ("iad", "n=a n=b", "--modes, --peers and --nat-peer: n is given twice"),
    ],
)
def test_what_a_search_lacks_and_malformed_peers_are_refused(
    modes: str, peers: str, reason: str
) -> None:
    with refused_with(re.escape(reason)):
        parse_modes(modes, nat_peers=peers.split())
