"""Seeded faults: each is put into a copy of the package, where the tests that are named beside it have to fail.

`bash scripts/mutants.sh` runs them all and prints a table. What survives is a hole in the suite.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOP, GENERATOR = "tests/decoding/test_loop.py", "tests/test_generator.py"
RULES, DECODER = "tests/decoding/test_search_rules.py", "tests/engine/test_block_decoder.py"


@dataclass(frozen=True)
class Mutant:
    """A fault, and where the suite sees it."""

    what: str
    file: str
    """below fairseq_aggdec/"""
    code: str
    """stands there exactly once"""
    fault: str
    """in its place"""
    tests: str
    """files or tests that must fail, separated by blanks"""


MUTANTS = [
    Mutant(
        "attention writes its scores into the caller's mask",
        "engine/layers.py",
        "    scores = torch.bmm(flat / math.sqrt(head_dim), keys)  # BH x W x L\n    if mask is not None:\n"
        "        scores.view(batch_size, heads, width, length).add_(mask)",
        "    scores = torch.bmm(flat / math.sqrt(head_dim), keys)  # BH x W x L\n    if mask is not None:\n"
        "        scores = mask.expand(batch_size, heads, width, length).flatten(0, 1).add_(scores)",
        "tests/test_generator_sizes.py::test_heads_and_rows",
    ),
    Mutant(
        "a draft is judged one position late",
        "decoding/verification.py",
        "read[first + 1 : end + 1]",
        "read[first:end]",
        LOOP,
    ),
    Mutant(
        "no token of the verifier's own is committed at the bifurcation",
        "decoding/outputs.py",
        "            committed.append(last + 1 - first)\n",
        "            last = max(first, last - (not passed[last]))\n            committed.append(last + 1 - first)\n",
        LOOP,
    ),
    Mutant(
        "a drafted EOS that passes does not end the sentence",
        "decoding/outputs.py",
        "passed[last] and tokens[last] != eos",
        "passed[last]",
        LOOP,
    ),
    Mutant(
        "junk behind a draft's end is judged as if it were drafted",
        "decoding/verification.py",
        "draft.known or map(int, lengths[0]), strict=True",
        "[min(width - 1, length + 1) for width, length in zip(ragged.widths, draft.known or map(int, lengths[0]))]",
        LOOP,
    ),
    Mutant(
        "junk behind a draft's end is judged as if it were drafted, where others' words may pass",
        "decoding/verification.py",
        "ragged.columns >= draft.lengths[ragged.rows]",
        "ragged.columns > draft.lengths[ragged.rows]",
        LOOP,
    ),
    Mutant(
        "drafts reach behind the longest output",
        "decoding/loop.py",
        "outputs.fitting(drafter.propose(outputs, longest), longest)",
        "drafter.propose(outputs, longest).cut(longest)",
        LOOP,
    ),
    Mutant(
        "the rules of rows that have left are those of the rows that stay",
        "decoding/loop.py",
        "            rules = rules.keep(outcome.remaining)\n            verifier",
        "            verifier",
        GENERATOR,
    ),
    Mutant(
        "two rows are swapped when one leaves",
        "decoding/outputs.py",
        "self.texts = [self.texts[row] for row in order]",
        "self.texts = [self.texts[row] for row in reversed(order)]",
        LOOP,
    ),
    Mutant(
        "the cache keeps the rows that leave",
        "engine/layers.py",
        "        keep_rows(self.memory, rows, moved, dim=1)\n",
        "",
        "tests/engine/test_kv_cache.py",
    ),
    Mutant(
        "the source of rows that leave stays",
        "engine/block_decoder.py",
        "self._cross = keep_rows(self._cross, rows, moved, dim=1)",
        "self._cross = self._cross[:, : rows.size(0)]",
        DECODER,
    ),
    Mutant(
        "the source's padding of rows that leave stays",
        "engine/block_decoder.py",
        "self._padding = keep_rows(self._padding, rows, moved)",
        "self._padding = self._padding[: rows.size(0)]",
        DECODER,
    ),
    Mutant(
        "the cache of the last batch is written over",
        "engine/layers.py",
        "        self.memory = self._none  # the last batch's is given back before there is more\n"
        "        self.memory = self._allocated(batch_size, _GRANULE, like)\n",
        "        if self.memory.size(1) < batch_size:\n"
        "            self.memory = self._allocated(batch_size, _GRANULE, like)\n",
        "tests/engine/test_kv_cache.py",
    ),
    Mutant(
        "what is written to weights is not noticed",
        "engine/engines.py",
        " and self._now() == self._seen and",
        " and",
        "tests/test_generator_lifetime.py",
    ),
    Mutant(
        "a step of fairseq's optimizers is not noticed",
        "engine/engines.py",
        " and torch.equal(self._sample, self._numbers)",
        "",
        "tests/test_generator_lifetime.py",
    ),
    Mutant(
        "a decoder whose numbers differ from fairseq's is used",
        "engine/trust.py",
        "    return None if apart <= tolerance else",
        "    return None if True else",
        "tests/test_generator_unusual.py tests/engine/test_trust.py",
    ),
    Mutant(
        "threads do not wait for one another",
        "generation/generator.py",
        "with self._engines.lock, nullcontext() if drafter is None else drafter.lock:",
        "if True:",
        "tests/test_generator_lifetime.py",
    ),
    Mutant(
        "a cache that grows forgets what it held",
        "engine/layers.py",
        "            wider[:, :, :, : self.memory.size(3)] = self.memory[:, : self._batch_size]\n",
        "",
        "tests/engine/test_kv_cache.py",
    ),
    Mutant(
        "a token sees the one behind it (several rows)",
        "engine/layers.py",
        "torch.arange(end, device=like.device) > last[..., None]",
        "torch.arange(end, device=like.device) > last[..., None] + 1",
        DECODER,
    ),
    Mutant(
        "a token sees the one behind it (one row)",
        "engine/layers.py",
        ".triu_(1)",
        ".triu_(2)",
        DECODER,
    ),
    Mutant(
        "the causal mask of one row begins a position early",
        "engine/layers.py",
        "return self._causal[last_start:end, :keys]",
        "return self._causal[max(0, last_start - 1) : end - (last_start > 0), :keys]",
        DECODER,
    ),
    Mutant(
        "positions of one row begin one late",
        "engine/block_decoder.py",
        "table.span(positions.start, end)",
        "table.span(positions.start + 1, end + 1)",
        DECODER,
    ),
    Mutant(
        "padding of the source is attended to",
        "engine/block_encoder.py",
        "x = self._layered(x, hidden if padded else None)",
        "x = self._layered(x, None)",
        "tests/engine/test_block_encoder.py",
    ),
    Mutant(
        "tokens of ragged blocks get their neighbours' places",
        "decoding/roles.py",
        "return self.rows * self.width + self.columns",
        "return self.rows * self.width + self.columns.roll(1)",
        "tests/decoding/test_ragged.py",
    ),
    Mutant(
        "verdicts of ragged blocks are spread over the wrong rows",
        "decoding/roles.py",
        "(last + 1 - widths + columns).minimum(last)",
        "(last + 1 - widths + columns).minimum(last.roll(1))",
        "tests/decoding/test_ragged.py tests/decoding/test_loop.py",
    ),
    Mutant(
        "a copy begins with the token that was matched",
        "decoding/drafters/input_guided.py",
        "draft = self._source[place : place + self._copyable[place]]",
        "draft = self._source[max(0, place - 1) : place + self._copyable[place]]",
        "tests/decoding/drafters/test_input_guided.py",
    ),
    Mutant(
        "a suffix that ends in several places is copied from the first",
        "decoding/drafters/input_guided.py",
        "if len(places) == 1 and longest >= least:",
        "if places and longest >= least:",
        "tests/decoding/drafters/test_input_guided.py",
    ),
    Mutant(
        "EOS is allowed one position early",
        "decoding/search_rules.py",
        "free & (positions < min(self.min_len, self.max_len))",
        "free & (positions < min(self.min_len, self.max_len) - 1)",
        RULES,
    ),
    Mutant(
        "the longest output is one token longer",
        "decoding/search_rules.py",
        "            forced = positions >= self.max_len\n",
        "            forced = positions > self.max_len\n",
        RULES,
    ),
    Mutant(
        "of words with equal scores the first is taken",
        "decoding/search_rules.py",
        "if first == second]",
        "if first < second]",
        "tests/test_generator.py",
    ),
    Mutant(
        "equal hypotheses of a list stay in their order",
        "decoding/beam/search.py",
        "torch.sort(scores, descending=True)[1]",
        "torch.sort(scores, descending=True, stable=True)[1]",
        "tests/test_beam_generator.py",
    ),
    Mutant(
        "where sentences leave, hypotheses get the paths of others",
        "decoding/beam/plain.py",
        "self.paths[rows]",
        "self.paths[: len(rows)]",
        "tests/decoding/beam/test_search.py",
    ),
    Mutant(
        "between equal sums the rows decide, and not the sums",
        "decoding/beam/plain.py",
        "beams.sums[own, -1].tolist()",
        "beams.sums[own, 0].tolist()",
        "tests/decoding/beam/test_search.py",
    ),
    Mutant(
        "the kernels let an output end too early",
        "engine/native/modules.py",
        "_address(bans.early))",
        "None)",
        "tests/engine/test_kernels.py",
    ),
    Mutant(
        "weights of large models are rounded to 16 bits",
        "engine/native/modules.py",
        "if torch.equal(narrow.to(weight.dtype), weight):",
        "if bool(narrow.isfinite().all()):",
        "tests/engine/test_kernels.py",
    ),
    Mutant(
        "EOS is forced at the source's length whatever unk scores",
        "decoding/search_rules.py",
        "        tokens, log_probs = settled(names, values, scores), values[:, 0]\n",
        "        tokens, log_probs = settled(names, values, scores), values[:, 0]\n"
        "        if ended is not None:\n"
        "            tokens = torch.where(ended, self.eos, tokens)\n",
        RULES,
    ),
    Mutant(
        "the penalty of unk is a reward",
        "decoding/search_rules.py",
        "scores[:, self.unk] -= self.unk_penalty",
        "scores[:, self.unk] += self.unk_penalty",
        RULES,
    ),
    Mutant(
        "an n-gram that has just ended is not banned",
        "decoding/search_rules.py",
        "(ends <= positions[:, None])",
        "(ends < positions[:, None])",
        RULES,
    ),
    Mutant(
        "of long vocabularies the last piece is not searched",
        "decoding/search_rules.py",
        "    if pieces * _PIECE < vocabulary:\n",
        "    if pieces * _PIECE < vocabulary - _PIECE:\n",
        RULES,
    ),
    Mutant(
        "an ensemble averages scores, not probabilities",
        "engine/ensemble.py",
        "torch.stack(log_probs).logsumexp(dim=0) - math.log(len(log_probs))",
        "torch.stack(log_probs).mean(dim=0)",
        "tests/engine/test_ensemble.py",
    ),
    Mutant(
        "the temperature is ignored",
        "engine/block_decoder.py",
        "yield logits if self._temperature == 1.0 else logits / self._temperature",
        "yield logits",
        GENERATOR,
    ),
    Mutant(
        "the fallback reads what an earlier block left behind its own",
        "engine/recompute.py",
        "        positions = positions.clamp(max=self._last)\n",
        "        positions = (positions - (positions > 3).long()).clamp(max=self._last)\n",
        DECODER,
    ),
    Mutant(
        "every drafted token passes",
        "decoding/verification.py",
        "map(eq, own[first:end], read[first + 1 : end + 1])",
        "[True] * length",
        LOOP,
    ),
    Mutant(
        "every drafted token passes, where others' words may pass",
        "decoding/verification.py",
        "own = proposed == choices.tokens",
        "own = proposed != NOTHING",
        LOOP,
    ),
    Mutant(
        "a token below the best few passes",
        "decoding/verification.py",
        "within & (drafted >= choices.highest[:, self.beta - 1])",
        "within",
        "tests/decoding/test_verification.py",
    ),
    Mutant(
        "a banned token passes where it is good enough",
        "decoding/search_rules.py",
        "return drafted.masked_fill_(self._bans.hit(tokens), -math.inf)",
        "return drafted",
        "tests/engine/test_kernels.py",
    ),
    Mutant(
        "proposals are read one column early",
        "engine/proposing_decoder.py",
        "chosen_at = lengths - 2 - self._starts",
        "chosen_at = (lengths - 3 - self._starts).clamp(min=0)",
        "tests/engine/test_proposing_decoder.py",
    ),
    Mutant(
        "masks of a draft do not see each other",
        "engine/draft_decoder.py",
        "*[end] * (width - (first - start))",
        "*range(first, start + width)",
        "tests/engine/test_draft_decoder.py",
    ),
    Mutant(
        "bf16 pads nothing",
        "engine/arithmetic/fixed_shapes.py",
        "return -(-rows // _ROWS) * _ROWS",
        "return rows",
        "tests/engine/test_bit_exact.py",
    ),
]


@cache
def pass_without_a_fault(tests: str) -> bool:
    """Whether tests pass in a copy of the package as it is: only then do they say something of a fault."""
    return not _fail(tests)


def killed(mutant: Mutant) -> bool:
    """Whether the named tests fail where the fault is, and only there."""
    if not pass_without_a_fault(mutant.tests):
        raise RuntimeError(f"{mutant.tests}: fails without any fault")
    return _fail(mutant.tests, mutant)


def _fail(tests: str, mutant: Mutant | None = None) -> bool:
    """Whether tests fail in a copy of the package, with a fault where one is given."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for part in ("fairseq_aggdec", "tests", "pyproject.toml"):
            source, copy = ROOT / part, Path(folder) / part
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
        if mutant is not None:
            (Path(folder) / "fairseq_aggdec" / mutant.file).write_text(mutated(mutant), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "--quiet", "--exitfirst", "--no-header", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *tests.split()],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode > 1:  # 1: tests have failed, below 0: the process died; all else says nothing about the fault
        raise RuntimeError(f"{tests}: pytest ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.returncode != 0


def mutated(mutant: Mutant) -> str:
    """The file with the fault in it."""
    text = (ROOT / "fairseq_aggdec" / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.code) != 1:
        raise ValueError(f"{mutant.file} has {text.count(mutant.code)} times: {mutant.code}")
    return text.replace(mutant.code, mutant.fault)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row a mutant; returns 1 where one survives."""
    parser = argparse.ArgumentParser(prog="scripts/mutants.sh", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose description has one of these words")
    args = parser.parse_args(argv)
    chosen = [one for one in MUTANTS if not args.words or any(word in one.what for word in args.words)]
    survivors = 0
    print("| fault | in | seen by | |\n|---|---|---|---|")
    for mutant in chosen:
        dead = killed(mutant)
        survivors += not dead
        tests = ", ".join(f"`{test}`" for test in mutant.tests.split())
        print(f"| {mutant.what} | `{mutant.file}` | {tests} | {'killed' if dead else '**survives**'} |", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
