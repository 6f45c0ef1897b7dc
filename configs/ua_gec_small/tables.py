"""The tables that ua_gec_small reproduces."""

from experiments.common_tables import correctors, edits, three_modes


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        correctors(
            "ge2022/1",
            results.at(record="bench/bench-test"),
            edits("M2 P", "M2 R", "M2 F0.5"),
            ours="UA-GEC's test set",
            differs="2+1 layers of 128",
            **three_modes("without synthetic data"),
        )
    ]
