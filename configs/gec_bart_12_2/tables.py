"""The tables that gec_bart_12_2 reproduces."""

from experiments.measures import Score, speed_up
from experiments.tables import beside

BIG = "../conll14_gec/bench/test-finetune"
"""the papers' speed-ups are over Transformer-big with synthetic data, which is a model of conll14_gec"""


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    at = results.at(record="bench/test-last", over_record=BIG)
    columns = {"F0.5": Score("M2 F0.5"), "Speedup": speed_up}
    modes = {"12+2 BART-Init (beam = 1)": "beam1", "12+2 BART-Init (IAD)": "iad"}
    rows = {
        name: at.at(f"last-{mode}", mode=mode).row(columns)
        for name, mode in modes.items()
    }
    several = at.at("last-iad", mode="iad").row(
        {"P": Score("M2 P"), "R": Score("M2 R"), **columns}
    )
    return [
        beside("ge2022/3", rows, greedy="12+2 BART-Init (beam = 1)"),
        beside("sun2021/5", {"several stages: Our approach (12+2 BART-Init)": several}),
    ]
