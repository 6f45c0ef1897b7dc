"""Random cases against stock fairseq until the time is over: `scripts/fuzz.sh --minutes N`.

hypothesis draws the cases in rounds. It makes a counterexample smaller, prints it, and keeps it in work/fuzz, where the
next run tries it first.
"""

import argparse
import logging
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase

import fairseq_aggdec
from tests.fuzzing.cases import Case, cases
from tests.fuzzing.checking import check

_ROUND = 100
"""cases of a round; a new round has new seeds"""
COMMON: dict[str, Any] = {
    "deadline": None, "suppress_health_check": list(HealthCheck), "report_multiple_bugs": False, "print_blob": True,
    "phases": (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
}  # fmt: skip
"""settings of hypothesis"""


def checked(counts: Counter[str], stop: Callable[[], bool] = lambda: False) -> Callable[[Case], None]:
    """The test of a case, which counts in `counts`. Where `stop` says so and nothing has failed, it does nothing."""
    failed = False

    def test(case: Case) -> None:
        nonlocal failed
        if stop() and not failed:
            return
        counts["cases"] += 1
        try:
            counts.update(check(case))
        except Exception:
            failed = True
            raise

    return test


def main(argv: Sequence[str] | None = None) -> int:
    """Print a counterexample, or what was counted; returns 1 after a counterexample, else 0."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz.sh", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="time in minutes (default: 60)")
    parser.add_argument("--seed", type=int, help="seed of the first round (default: a random one, which is printed)")
    args = parser.parse_args(argv)
    quiet()
    first = random.randrange(10**6) if args.seed is None else args.seed
    end = time.monotonic() + 60 * args.minutes
    counts: Counter[str] = Counter()
    number = first
    while time.monotonic() < end:
        test = given(cases())(checked(counts, lambda: time.monotonic() > end))
        store = DirectoryBasedExampleDatabase("work/fuzz")
        try:
            seed(number)(settings(max_examples=_ROUND, database=store, **COMMON)(test))()
        except Exception as error:
            notes = "\n".join(getattr(error, "__notes__", []))
            print(f"{type(error).__name__}: {error}\n{notes}\nrepeat: bash scripts/fuzz.sh --seed {number}", flush=True)
            return 1
        number += 1
        print(_summary(counts, first), flush=True)
    print("\n".join(f"{name}: {count}" for name, count in sorted(counts.items()) if ":" in name))
    return 0


def quiet() -> None:
    """Leave out warnings of fallbacks and of options without effect."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    fairseq_aggdec.register()
    logging.getLogger("fairseq_aggdec").setLevel(logging.ERROR)


def _summary(counts: Counter[str], first: int) -> str:
    named = ", ".join(
        f"{counts[name]:,} {name}" for name in ("cases", "decodings", "sentences", "near-ties", "refused")
    )
    return f"{named}; no counterexample; seeds from {first}"


if __name__ == "__main__":
    raise SystemExit(main())
