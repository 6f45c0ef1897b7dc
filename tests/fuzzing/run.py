"""Random cases against stock fairseq until the time is over: `scripts/fuzz.sh --minutes N`."""

import argparse
import itertools
import logging
import random
import time
import warnings
from collections import Counter
from collections.abc import Sequence

import fairseq_aggdec
from tests.fuzzing.cases import case_of
from tests.fuzzing.checking import check

_ROUND = 100
"""cases from one line of counts to the next"""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the first case that fails, or what was counted; returns 1 after a failure, else 0."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz.sh", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=60, help="time in minutes (default: 60)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of the first case (default: a random one, which is printed)",
    )
    args = parser.parse_args(argv)
    quiet()
    first = random.randrange(10**9) if args.seed is None else args.seed
    end = time.monotonic() + 60 * args.minutes
    counts: Counter[str] = Counter()
    for seed in itertools.count(first):
        case = case_of(seed)
        try:
            counts.update(check(case), cases=1)
        except Exception as error:
            print(
                f"{type(error).__name__}: {error}\n{case}\nrepeat: bash scripts/fuzz.sh --seed {seed}",
                flush=True,
            )
            return 1
        is_over = time.monotonic() > end
        if is_over or counts["cases"] % _ROUND == 0:
            print(_summary(counts, first), flush=True)
        if is_over:
            break
    print(
        "\n".join(
            f"{name}: {count}" for name, count in sorted(counts.items()) if ":" in name
        )
    )
    return 0


def quiet() -> None:
    """Leave out warnings of fallbacks and of options without effect."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    fairseq_aggdec.register()
    logging.getLogger("fairseq_aggdec").setLevel(logging.ERROR)


def _summary(counts: Counter[str], first: int) -> str:
    named = ", ".join(
        f"{counts[name]:,} {name}"
        for name in ("cases", "decodings", "sentences", "near-ties", "refused")
    )
    return f"{named}; none fails; seeds from {first}"


if __name__ == "__main__":
    raise SystemExit(main())
