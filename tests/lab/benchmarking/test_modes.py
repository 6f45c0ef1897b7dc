"""Tests of `fairseq_aggdec.lab.benchmarking.modes`."""

import re

import pytest

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.benchmarking.modes import Mode, NatPeer, parse_modes


def test_modes_carry_their_settings() -> None:
    assert Mode.parse("beam4") == Mode("beam4", "beam", 4)
    assert Mode.parse("gad++:5:3.5") == Mode("gad++:5:3.5", "gad++", top_beta=5, tolerance=3.5)
    assert Mode.parse("iad++:2:0.5") == Mode("iad++:2:0.5", "iad++", top_beta=2, tolerance=0.5)
    assert not Mode.parse("iad++").lossless
    assert Mode.parse("iad++:1:2").lossless
    assert Mode.parse("blockwise:2") == Mode("blockwise:2", "blockwise", top_beta=2)
    assert Mode.parse("iad~0.2@int8") == Mode("iad~0.2@int8", "iad", precision="int8", oracle=0.2)
    assert Mode.parse("iad") == Mode("iad", "iad")
    assert Mode.parse("aggressive-beam:4") == Mode("aggressive-beam:4", "aggressive-beam", 4)
    assert Mode.parse("aggressive-beam:4:0") == Mode("aggressive-beam:4:0", "aggressive-beam", 4, budget=0)
    assert Mode.parse("gad++@bf16") == Mode("gad++@bf16", "gad++", precision="bf16")
    assert Mode.parse("gad++:3:1").top_beta == 3
    assert Mode.parse("gad+whole~7@int8").drafts == "whole"
    peer = Mode.parse("ctranslate2:beam5@bf16")
    assert peer == Mode("ctranslate2:beam5@bf16", "beam", 5, peer="ctranslate2", precision="bf16")


@pytest.mark.parametrize(
    "name", ["", "fast", "beamx", "gad++:3", "iad~x", "nmt:greedy", "aggressive-beam:5:", "gad+whole+whole"]
)
def test_malformed_modes_are_refused(name: str) -> None:
    with pytest.raises(AggdecError, match=r"unknown mode .*: choose from beam5"):
        Mode.parse(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("iad@fp8", "unknown precision fp8; choose from fp32"),
        ("beam5@int8", "fairseq's own search has no int8"),
        ("beam0", "a beam has at least 1"),
        ("iad++:0:2", "top-beta must be at least 1"),
        ("gad++:5:-1", "the tolerance at least 0"),
        ("aggressive-beam:5:-1", "scores 0 or more prefixes ahead"),
        ("aggressive-beam:5@exact", "there is no bit-exact beam search"),
        ("greedy~3", "~ sets the oracle"),
        ("gad+++whole", "whole is for modes whose drafts are cut otherwise: iad, gad"),
        ("ctranslate2:iad", "ctranslate2 decodes by greedy or beamN"),
    ],
)
def test_senseless_modes_are_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(AggdecError, match=f"mode {re.escape(name)}: .*{reason}"):
        Mode.parse(name)


def test_a_peer_stands_for_all_its_modes() -> None:
    names = [mode.name for mode in parse_modes("greedy", "ctranslate2")]
    assert names == [
        "greedy",
        "ctranslate2:greedy",
        "ctranslate2:greedy@int8",
        "ctranslate2:beam5",
        "ctranslate2:beam5@int8",
    ]
    assert [mode.name for mode in parse_modes("", "ctranslate2:beam2")] == ["ctranslate2:beam2"]


def test_non_autoregressive_peers_come_after_the_modes() -> None:
    modes = parse_modes("greedy", nat_peers=["nat=a/nat.pt:1", "cmlm-4=b=c.pt:4:5", "levt=levt.pt"])
    assert [mode.nat for mode in modes] == [
        None,
        NatPeer("nat", "a/nat.pt", 1, 1),
        NatPeer("cmlm-4", "b=c.pt", 4, 5),
        NatPeer("levt", "levt.pt", 10, 1),
    ]
    assert modes[1] == Mode("nat", "nat", nat=modes[1].nat)
    assert modes[1].implementation == "fairseq"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["model.pt"], "--nat-peer model.pt: write LABEL=PATH"),
        (["nat=a.pt:ten"], "such as cmlm=model.pt:10:5"),
        (["greedy=a.pt"], "greedy is a mode's name; give the model another label"),
        (["nat=a.pt", "nat=b.pt"], "--nat-peer: nat is given twice"),
    ],
)
def test_malformed_peers_are_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(AggdecError, match=re.escape(reason)):
        parse_modes("greedy", nat_peers=texts)
