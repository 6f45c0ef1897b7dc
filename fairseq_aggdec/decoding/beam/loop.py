"""The loop of aggressive beam search: plan, score the planned prefixes in one pass, search while rows are known.

The output does not depend on the plan: a row is a function of its prefix alone (a token attends only to its prefix),
and the search reads only the rows of its live hypotheses. The plan decides how many passes there are. Every pass scores
the prefixes that the search waits for, and so advances it by at least a step.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from fairseq_aggdec.decoding.beam.prefix_tree import Node, PrefixTree, Row
from fairseq_aggdec.decoding.beam.roles import Plan, Sentence, TreeBlock, TreeVerifier
from fairseq_aggdec.decoding.beam.search import (
    BeamOptions,
    BeamSearch,
    BeamStats,
    Output,
)
from fairseq_aggdec.decoding.outputs import fewest_moves
from fairseq_aggdec.decoding.search_rules import SearchRules
from fairseq_aggdec.decoding.tokens import HOST, RowSelection, padded
from fairseq_aggdec.process import no_garbage_collection


class NotNumbersError(ArithmeticError):
    """A prefix overflows and spoils the other prefixes of its sentence, with which it shares a cache.

    Attention gives hidden tokens weight zero, and zero times infinity is NaN. In fairseq's search each hypothesis has a
    cache of its own.
    """


@no_garbage_collection()
def aggressive_beam_search(
    verifier: TreeVerifier,
    rules: SearchRules,
    options: BeamOptions,
    first_tokens: Tensor,
    plan: Plan,
    device: torch.device = HOST,
) -> list[tuple[list[Output], BeamStats]]:
    """Search a batch; the outputs do not depend on the plan.

    `verifier` is ready for this batch; `first_tokens`: the decoder's first input, B, on the host; `device`: the
    verifier's. Returns the finished hypotheses of each sentence, best first, and its statistics.
    Raises `NotNumbersError`.
    """
    sentences = list(_started(rules, options, first_tokens))
    stats = [BeamStats() for _ in sentences]
    active = list(sentences)
    while active:
        # plan: the prefixes that the searches wait for, and those that they will probably need soon
        planned = []
        needed = []
        for sentence in active:
            tree = sentence.tree
            ahead = plan(sentence)
            waited_for = tree.admit(
                sentence.needed, options.vocabulary, options.max_len
            )
            needed.append(len(waited_for))
            planned.append(
                waited_for + tree.admit(ahead, options.vocabulary, options.max_len)
            )

        # score the plans of all sentences in one pass
        slots = max(sentence.tree.slots for sentence in active)
        block = TreeBlock.of(planned, slots)
        rows = _score(verifier, rules, options, block, planned)
        for sentence, nodes in zip(active, planned, strict=True):
            scored = [next(rows) for _ in nodes]
            sentence.tree.take_in(nodes, scored)

        # search while rows are known
        for sentence, nodes, count in zip(active, planned, needed, strict=True):
            steps = _advance(sentence)
            stats[sentence.index].add(len(nodes), count, steps)
        staying = [
            place
            for place, sentence in enumerate(active)
            if not sentence.search.has_ended
        ]
        staying = fewest_moves(staying)
        if 0 < len(staying) < len(active):  # finished sentences leave the batch
            remaining = RowSelection(staying, device)
            rules = rules.keep(remaining)
            verifier.keep(remaining)
        active = [active[place] for place in staying]
    found = [
        (sentence.search.outputs(), stats[sentence.index]) for sentence in sentences
    ]
    for sentence in sentences:
        sentence.tree.forget()
    return found


def _started(
    rules: SearchRules,
    options: BeamOptions,
    first_tokens: Tensor,
) -> Iterator[Sentence]:
    """Each sentence before its first step, with the start symbol and a forced prefix to be scored in one pass."""
    first = first_tokens.tolist()
    prefixes: list[list[int]] = [[]] * len(first)
    if rules.prefix is not None:
        prefixes = rules.prefix.tolist()
    last_lengths = rules.last_lengths(len(first))
    given = zip(first, prefixes, last_lengths, strict=True)
    for index, (token, prefix, last_length) in enumerate(given):
        tree = PrefixTree(token)
        node = tree.root
        for token in prefix:
            if token in (rules.pad, rules.eos):
                break
            node = node.child(token)
        search = BeamSearch(tree.root, options, prefix, last_length)
        yield Sentence(index, tree, search, needed=[tree.root, node])


def _advance(sentence: Sentence) -> int:
    """Search while rows are known; return how many steps were taken."""
    search = sentence.search
    before = search.taken
    while not search.has_ended:
        nodes = [hypothesis.node for hypothesis in search.live]
        missing = search.step([node.row for node in nodes])
        if missing:
            sentence.needed = [nodes[index] for index in missing]
            break
    sentence.tree.move_on([hypothesis.node for hypothesis in search.live], search.taken)
    return search.taken - before


def _score(
    verifier: TreeVerifier,
    rules: SearchRules,
    options: BeamOptions,
    block: TreeBlock,
    planned: Sequence[Sequence[Node]],
) -> Iterator[Row]:
    """Score a block; yield the rows after its prefixes in order. Raises `NotNumbersError`."""
    sequences: Tensor | None = None
    if rules.read_output:
        texts = [node.tokens() for nodes in planned for node in nodes]
        sequences = padded(texts, rules.pad)
    for values, tokens, whole in verifier.verify_tree(
        block, rules, options.entries, sequences
    ):
        rows = zip(values.tolist(), tokens.tolist(), strict=True)
        for index, (best, names) in enumerate(rows):
            if math.isnan(best[0]):
                raise NotNumbersError
            yield Row(best, names, whole, index)
