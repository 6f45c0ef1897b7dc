"""Counters of a decoding run: for each sentence, and their totals.

Terms: a *drafted* token was proposed by the drafter, an *accepted* one passed verification; the verifier adds one token
to each block: the correction at the bifurcation, or the bonus token after a fully accepted draft. A
*committed* token is part of the output. An iteration without a draft is a *single step*.
"""

from dataclasses import dataclass, field


@dataclass
class SentenceStats:
    """The trace of one sentence; lists have an entry for each iteration."""

    drafted: list[int] = field(default_factory=list)
    """tokens proposed"""
    accepted: list[int] = field(default_factory=list)
    """tokens of the draft that became output"""
    committed: list[int] = field(default_factory=list)
    """tokens added to the output, the verifier's included"""

    @property
    def iterations(self) -> int:
        return len(self.committed)

    @property
    def single_steps(self) -> int:
        return sum(drafted == 0 for drafted in self.drafted)


@dataclass
class DecodingTotals:
    """Sums over sentences."""

    sentences: int = 0
    iterations: int = 0
    committed: int = 0
    drafted: int = 0
    accepted: int = 0
    single_steps: int = 0

    def add(self, sentence: SentenceStats) -> None:
        self.sentences += 1
        self.iterations += sentence.iterations
        self.committed += sum(sentence.committed)
        self.drafted += sum(sentence.drafted)
        self.accepted += sum(sentence.accepted)
        self.single_steps += sentence.single_steps

    @property
    def mean_iterations(self) -> float:
        """Iterations per sentence."""
        return self.iterations / max(1, self.sentences)

    @property
    def mean_accepted_tokens(self) -> float:
        """Committed tokens per iteration, the verifier's and EOS included; "Tok." of papers/000 Table 6 has no EOS."""
        return self.committed / max(1, self.iterations)

    @property
    def acceptance_rate(self) -> float:
        """Accepted share of the drafted tokens."""
        return self.accepted / max(1, self.drafted)

    def summary(self) -> str:
        """The log line at the end of a run."""
        committed = max(1, self.committed)
        verifier = self.committed - self.accepted - self.single_steps
        return (
            f"{self.sentences} sentences, {self.mean_iterations:.2f} iterations/sentence, "
            f"{self.mean_accepted_tokens:.2f} mean accepted tokens, acceptance rate {self.acceptance_rate:.1%}; "
            f"output tokens: {self.accepted / committed:.1%} drafted, {verifier / committed:.1%} verifier's own after "
            f"a draft, {self.single_steps / committed:.1%} single steps"
        )


class BeamTotals(DecodingTotals):
    """Totals of a beam search: iterations are passes, committed tokens steps, drafted tokens prefixes scored ahead."""

    def summary(self) -> str:
        sentences = max(1, self.sentences)
        passes = max(1, self.iterations)
        return (
            f"{self.sentences} sentences, {self.mean_iterations:.2f} passes/sentence for "
            f"{self.committed / sentences:.2f} steps, {self.drafted / passes:.2f} prefixes scored ahead in a pass"
        )
