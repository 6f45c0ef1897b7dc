"""Names of modes and of non-autoregressive models on the command line."""

import re

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.bench.modes import Mode, NatPeer, parse_modes


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("beam4", {"decoding": "beam", "beam": 4}),
        ("iad", {"decoding": "iad"}),
        (
            "gad+whole@int8",
            {"decoding": "gad", "options": {"drafts": "whole"}, "precision": "int8"},
        ),
        (
            "gad++:5:3.5@bf16",
            {
                "decoding": "gad++",
                "options": {"top_beta": 5, "tolerance": 3.5},
                "precision": "bf16",
            },
        ),
        (
            "speculative:a/b.pt+whole",
            {
                "decoding": "speculative",
                "options": {"drafter": "a/b.pt", "drafts": "whole"},
            },
        ),
        ("blockwise:2", {"decoding": "blockwise", "options": {"top_beta": 2}}),
        ("aggressive-beam:4", {"decoding": "aggressive-beam", "beam": 4}),
        (
            "aggressive-beam:4:0",
            {"decoding": "aggressive-beam", "beam": 4, "budget": 0},
        ),
        (
            "ctranslate2:beam5@bf16",
            {"decoding": "beam", "beam": 5, "peer": "ctranslate2", "precision": "bf16"},
        ),
    ],
)
def test_a_mode_carries_its_settings(name: str, settings: dict) -> None:
    assert Mode.parse(name) == Mode(name, **settings)


@pytest.mark.parametrize(
    "name",
    "fast beamx beam0 beam:5 gad++:3 iad++:0:2 gad++:5:-1 aggressive-beam:5: aggressive-beam:5:-1 iad@fp8 iad@ "
    "gad+whole+whole gad+++whole nmt:greedy ctranslate2:iad".split(),
)
def test_malformed_modes_are_refused(name: str) -> None:
    with pytest.raises(
        AggdecError, match=rf"unknown mode {re.escape(name)}: choose from beam5"
    ):
        Mode.parse(name)


def test_peers_come_after_the_modes() -> None:
    modes = parse_modes(
        "greedy", "ctranslate2", ["nat=a/nat.pt:1", "cmlm-4=b=c.pt:4:5", "levt=levt.pt"]
    )
    names = [mode.name.removeprefix("ctranslate2:") for mode in modes]
    assert names == [
        "greedy",
        "greedy",
        "greedy@int8",
        "beam5",
        "beam5@int8",
        "nat",
        "cmlm-4",
        "levt",
    ]
    peers = [
        NatPeer("nat", "a/nat.pt", 1, 1),
        NatPeer("cmlm-4", "b=c.pt", 4, 5),
        NatPeer("levt", "levt.pt", 10, 1),
    ]
    assert [mode.nat for mode in modes] == [*[None] * 5, *peers]
    assert modes[5] == Mode("nat", "nat", nat=peers[0])
    assert [mode.name for mode in parse_modes("", "ctranslate2:beam2")] == [
        "ctranslate2:beam2"
    ]


@pytest.mark.parametrize(
    ("modes", "peers", "reason"),
    [
        ("beam5@int8", [], "mode beam5@int8: fairseq's own search has no int8"),
        (
            "aggressive-beam:5@exact",
            [],
            "only this plugin's modes without a beam can be bit-exact",
        ),
        (
            "ctranslate2:greedy@exact",
            [],
            "only this plugin's modes without a beam can be bit-exact",
        ),
        (
            "greedy",
            ["nat=a.pt:ten"],
            "--nat-peer nat=a.pt:ten: write LABEL=PATH[:ITERATIONS[:LENGTH-BEAM]]",
        ),
        ("greedy", ["nat=a.pt:0"], "such as cmlm=model.pt:10:5"),
        (
            "greedy",
            ["greedy=a.pt"],
            "greedy is a mode's name; give the model another label",
        ),
        (
            "greedy",
            ["nat=a.pt", "nat=b.pt"],
            "--modes, --peers and --nat-peer: nat is given twice",
        ),
    ],
)
def test_what_a_search_lacks_and_malformed_peers_are_refused(
    modes: str, peers: list[str], reason: str
) -> None:
    with pytest.raises(AggdecError, match=re.escape(reason)):
        parse_modes(modes, nat_peers=peers)
