"""`aggdec` for these models: `bench` times the forms of input-guided decoding below, other verbs are as elsewhere."""

import sys

import models  # noqa: F401 - fairseq then knows the stress marker's architecture

from fairseq_aggdec.cli import verbs
from fairseq_aggdec.errors import on_command_line
from fairseq_aggdec.lab.bench.measure import measure
from fairseq_aggdec.lab.bench.modes import ModeSpec, parse_modes

BY_HAND = (4, 6, 8, 12)
"""longest drafts in tokens"""
MODES = [
    *parse_modes("beam1,greedy,iad"),
    ModeSpec("iad, paper's rule", "iad", options={"copies": "paper"}),
    *(
        ModeSpec(f"iad, {longest} at most", "iad", options={"max_draft_len": longest})
        for longest in BY_HAND
    ),
]


@on_command_line()
def main(words: list[str]) -> None:
    """Run a verb of `aggdec`."""
    if words[0] != "bench":
        sys.exit(verbs.main(words))
    bench = verbs.parse(words)
    bench.start()
    measure(bench, MODES, bench.command).save(bench.json)


if __name__ == "__main__":
    main(sys.argv[1:])
