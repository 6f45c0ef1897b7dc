"""The loop: search as far as rows reach, plan, score what is missing in one pass, go on.

Why the output cannot depend on the planner: a row is a function of its prefix alone (the pass lets a token see the
tokens of its prefix and nothing else), and the search reads nothing but the rows of its own hypotheses. What else was
scored decides how many passes it takes. Every pass scores what the search waits for, and so takes it a step further.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Planner, Sentence, TreeBlock, TreeVerifier, best_entries_behind
from fairseq_aggdec.decoding.beam.search import BeamOptions, BeamSearch, BeamStats, Output
from fairseq_aggdec.decoding.outputs import moving_few
from fairseq_aggdec.decoding.search_rules import SearchRules


class NotNumbersError(ArithmeticError):
    """A prefix that was read overflows, and with it what its sentence's other prefixes have.

    Of what they do not see they take zero times, and zero times infinity is no number (in PyTorch's products; in
    fairseq's search each hypothesis has a cache of its own).
    """


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Python's collector of reference cycles rests meanwhile.

    The trees of a batch are tens of thousands of objects that live until its end. Collections before it find nothing,
    count them among the old objects, and so bring about collections of the whole process: 6 % of the time in batches
    of 32.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_no_garbage_collection()
def aggressive_beam_search(
    verifier: TreeVerifier, rules: SearchRules, options: BeamOptions, planner: Planner, first_tokens: Tensor
) -> list[tuple[list[Output], BeamStats]]:
    """Search a batch; the outputs do not depend on the planner.

    Args:
        verifier: ready to read this batch.
        rules: what may be chosen, for this batch.
        options: of the search.
        planner: ready to plan for this batch.
        first_tokens: the decoder's first input, B.

    Returns:
        of each sentence what has finished, best first, and what it took.

    Raises:
        NotNumbersError: the batch cannot be searched by prefixes that share a cache.
    """
    sentences = list(_begun(rules, options, first_tokens))
    stats = [BeamStats() for _ in sentences]
    going = list(sentences)
    while going:
        # plan: what the searches wait for, and what they will probably need soon
        plans = planner.plan(going)
        planned, needed = [], []
        for sentence, plan in zip(going, plans, strict=True):
            nodes = sentence.tree.admit(sentence.needed, options.vocabulary, options.max_len)
            needed.append(len(nodes))
            planned.append(nodes + sentence.tree.admit(plan, options.vocabulary, options.max_len))

        # score it, all sentences in one pass
        block = TreeBlock.of(planned, max(sentence.tree.slots for sentence in going), first_tokens.device)
        rows = _scored(verifier, rules, options, block, planned)
        for sentence, nodes in zip(going, planned, strict=True):
            sentence.tree.take_in(nodes, [next(rows) for _ in nodes])

        # search as far as the rows reach
        steps = [_go_on(sentence) for sentence in going]
        planner.learn(going, steps)
        for sentence, nodes, waited_for, made in zip(going, planned, needed, steps, strict=True):
            stats[sentence.number].add(len(nodes), waited_for, made)
        staying = moving_few([place for place, sentence in enumerate(going) if not sentence.search.has_ended])
        if 0 < len(staying) < len(going):  # finished sentences leave the batch
            remaining = torch.tensor(staying, dtype=torch.long, device=first_tokens.device)
            rules = rules.keep(remaining)
            verifier.keep(remaining)
            planner.keep(remaining)
        going = [going[place] for place in staying]
    found = [(sentence.search.outputs(), stats[sentence.number]) for sentence in sentences]
    for sentence in sentences:
        sentence.tree.forget()
    return found


def _begun(rules: SearchRules, options: BeamOptions, first_tokens: Tensor) -> Iterator[Sentence]:
    """Of each sentence, a tree of the start symbol alone and a search that has taken no step."""
    prefixes: list[list[int]] = [[]] * first_tokens.size(0) if rules.prefix is None else rules.prefix.tolist()
    lengths: list[int | None] = (
        [None] * len(prefixes) if rules.source_lengths is None else rules.source_lengths.tolist()
    )
    for number, (first, prefix, length) in enumerate(zip(first_tokens.tolist(), prefixes, lengths, strict=True)):
        tree = PrefixTree(first)
        yield Sentence(number, tree, BeamSearch(tree.root, options, prefix, length), [tree.root])


def _go_on(sentence: Sentence) -> int:
    """Search as far as rows reach; returns the number of steps."""
    search, before = sentence.search, sentence.search.taken
    while not search.has_ended:
        nodes = [hypothesis.node for hypothesis in search.live]
        for node in nodes:
            node.was_live = True
        missing = search.step([node.row for node in nodes])
        if missing:
            sentence.needed = [nodes[number] for number in missing]
            break
    sentence.tree.move_on([hypothesis.node for hypothesis in search.live], search.taken)
    return search.taken - before


def _scored(
    verifier: TreeVerifier,
    rules: SearchRules,
    options: BeamOptions,
    block: TreeBlock,
    planned: Sequence[Sequence[Node]],
) -> Iterator[Row]:
    """The rows behind the prefixes of a block, one after the other. Raises `NotNumbersError`."""
    sequences = _sequences(planned, rules, block.tokens.device) if rules.no_repeat_ngram_size > 1 else None
    earliest = min(node.depth for nodes in planned for node in nodes)
    for values, tokens, whole in best_entries_behind(verifier, rules, options, block, earliest, sequences):
        for number, (best, names) in enumerate(zip(values.tolist(), tokens.tolist(), strict=True)):
            if math.isnan(best[0]):
                raise NotNumbersError
            yield Row(best, names, whole, number)


def _sequences(planned: Sequence[Sequence[Node]], rules: SearchRules, device: torch.device) -> Tensor:
    """The decoder's inputs up to the end of each prefix, N x L; padding behind it."""
    texts = [node.tokens() for nodes in planned for node in nodes]
    width = max(map(len, texts))
    return torch.tensor([text + [rules.pad] * (width - len(text)) for text in texts], device=device)
