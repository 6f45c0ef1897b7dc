"""The search against fairseq's own, number by number, where ties are common and whoever plans plans anything."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from fairseq import search
from hypothesis import given
from hypothesis import strategies as st

from fairseq_aggdec.decoding.beam import prefix_tree
from fairseq_aggdec.decoding.beam.search import BeamOptions
from fairseq_aggdec.decoding.search_rules import SearchRules
from tests.support.random_models import dictionary
from tests.support.scripted_beams import (
    Outputs,
    Table,
    TableVerifier,
    WildPlan,
    ahead,
    by_fairseq,
    by_us,
)
from tests.support.scripted_decoding import examples

WORDS = dictionary(16)

tables = st.builds(
    functools.partial(Table, WORDS),
    seed=st.integers(0, 1000),
    context=st.sampled_from([0, 1, 2, 60]),
    levels=st.sampled_from([1, 2, 5, 100_000]),
    end=st.sampled_from([-2.0, 0.0, 2.0, 4.0]),
)
sizes = st.integers(1, 8)
batches = st.sampled_from([1, 3, 16])
option_values = st.fixed_dictionaries(
    {
        "max_len_b": st.sampled_from([1, 2, 6, 14]),
        "min_len": st.sampled_from([0, 1, 1, 4]),
        "unk_penalty": st.sampled_from([0.0, 0.0, 1.5, -2.0]),
        "temperature": st.sampled_from([1.0, 0.6]),
        "len_penalty": st.sampled_from([1.0, 0.0, 0.6, 2.0]),
        "normalize_scores": st.booleans(),
        "tokens_to_suppress": st.sampled_from([(), (), ("w1", "w7")]),
    }
)


def rules_of(options: dict[str, Any], **others: Any) -> SearchRules:
    """Of the options that `SequenceGenerator` takes."""
    return SearchRules(
        WORDS.pad(),
        WORDS.unk(),
        WORDS.eos(),
        options.get("max_len_b", 200),
        min_len=options.get("min_len", 1),
        unk_penalty=options.get("unk_penalty", 0.0),
        suppressed=tuple(
            WORDS.index(word) for word in options.get("tokens_to_suppress", ())
        ),
        **others,
    )


def beam_of(options: dict[str, Any], size: int, max_len: int) -> BeamOptions:
    return BeamOptions(
        size,
        WORDS.eos(),
        max_len,
        len(WORDS),
        options.get("normalize_scores", True),
        options.get("len_penalty", 1.0),
        max(0.0, -options.get("unk_penalty", 0.0)),
    )


@pytest.fixture(autouse=True, scope="module")
def few_slots() -> Iterator[None]:
    """So that slots are used again in every test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_tree, "_SLOTS_BEFORE_CLEANUP", 10)
        yield


def check(
    table: Table,
    size: int,
    batch: int,
    options: dict[str, Any],
    fairseq: dict[str, Any] | None = None,
    **others: Any,
) -> list[Outputs]:
    """By fairseq, by us one position a hypothesis, and by us after wild plans: the same numbers.

    `fairseq` are arguments of fairseq's generator alone, `others` of our rules alone.
    """
    sentences = list(range(4, 4 + batch))
    stock = by_fairseq(
        table,
        sentences,
        size,
        prefix=others.get("prefix"),
        **options,
        **(fairseq or {}),
    )
    rules = rules_of(options, **others)
    sources = [[5, 6, 7, 8]] * batch
    plans = (
        None,
        ahead(0),
        WildPlan(table.seed, len(WORDS)),
        ahead(24, [()] * batch),
        ahead(9, sources),
    )
    for plan, piece in zip(plans, (1000, 3, 7, 5, 1000), strict=True):
        verifier = TableVerifier(
            table, sentences, piece, options.get("temperature", 1.0)
        )
        assert (
            by_us(verifier, rules, beam_of(options, size, rules.max_len), plan) == stock
        )
    return stock


@examples(14)
@given(tables, sizes, batches, option_values)
def test_options(table: Table, size: int, batch: int, options: dict[str, Any]) -> None:
    options["min_len"] = min(options["min_len"], options["max_len_b"])
    check(table, size, batch, options)


@examples(8)
@given(tables, sizes, batches, option_values, st.integers(1, 5), st.data())
def test_forced_prefixes(
    table: Table,
    size: int,
    batch: int,
    options: dict[str, Any],
    width: int,
    data: st.DataObject,
) -> None:
    """Beginnings of references, some of which end within the prefix; of one that is empty fairseq's search stops."""
    options.update(max_len_b=6, min_len=1)
    tokens = st.integers(4, len(WORDS) - 1)
    texts = data.draw(
        st.lists(
            st.lists(tokens, min_size=1, max_size=6), min_size=batch, max_size=batch
        )
    )
    padded = [[*text, WORDS.eos(), *[WORDS.pad()] * width][:width] for text in texts]
    found = check(table, size, batch, options, prefix=torch.tensor(padded))
    for outputs, forced in zip(found, padded, strict=True):
        wanted = [token for token in forced if token != WORDS.pad()]
        assert all(tokens[: len(wanted)] == wanted for tokens, _, _ in outputs)


@examples(10)
@given(
    tables, sizes, st.lists(st.integers(1, 6), min_size=1, max_size=4), option_values
)
def test_match_source_len(
    table: Table, size: int, lengths: list[int], options: dict[str, Any]
) -> None:
    """With an unknown word of negative penalty some outputs are longer than they may be: score minus infinity."""
    options.update(min_len=1, max_len_b=max(lengths))
    strategy = search.LengthConstrainedBeamSearch(
        WORDS, min_len_a=1, min_len_b=0, max_len_a=1, max_len_b=0
    )
    fairseq = {
        "match_source_len": True,
        "search_strategy": strategy,
        "source_lengths": torch.tensor(lengths),
    }
    check(
        table,
        size,
        len(lengths),
        options,
        fairseq,
        source_lengths=torch.tensor(lengths),
    )


def test_slots_of_dead_branches_are_used_again() -> None:
    """A wild plan asks for many more prefixes than there are slots, and the output is the same."""
    table = Table(WORDS, 1, 60, 100_000, end=-4.0)
    rules = rules_of({"max_len_b": 50})
    options = beam_of({}, 5, 50)
    verifier = TableVerifier(table, [4])
    found = by_us(verifier, rules, options, WildPlan(1, len(WORDS)))
    assert found == by_us(TableVerifier(table, [4]), rules, options)
    assert sum(sizes[0] for sizes in verifier.sizes) > 300
    assert verifier.slots < 150
