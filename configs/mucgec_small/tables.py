"""The tables that mucgec_small reproduces."""

from experiments.common_tables import REFERENCE_EDITS, correctors, three_modes
from experiments.measures import Score, speed_up


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    columns = {
        "NLPCC-18 F0.5": Score("F0.5 (references)"),
        "NLPCC-18 Speedup": speed_up,
    }
    of_edits = dict(
        zip(("P", "R", "F0.5"), map(Score, REFERENCE_EDITS), strict=True)
    ) | {"Speedup": speed_up}
    at = results.at(record="bench/bench-test")
    differs = "2+1 layers of 192, training data made of words"
    return [
        correctors(
            "ge2022/4",
            at,
            columns,
            ours="MuCGEC's development set, F0.5 of characters against its corrections",
            differs=differs,
            **three_modes("Transformer"),
        ),
        correctors(
            "sun2021/6",
            at,
            of_edits,
            {"Transformer-big (beam=5)": "beam5", "Our approach (9+3)": "iad"},
            ours="MuCGEC's development set, characters against its corrections",
            differs=differs,
            beam="Transformer-big (beam=5)",
        ),
    ]
