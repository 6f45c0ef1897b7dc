"""The tables that nlpcc18_gec reproduces."""

from experiments.common_tables import REFERENCE_EDITS, three_modes
from experiments.measures import Score, speed_up
from experiments.tables import beside


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    at = results.at(record="bench/test-scratch")
    deep = at.at(
        "scratch-9-3-iad",
        mode="iad",
        record="bench/test-scratch-9-3",
        over_record=at.record,
    )
    modes = three_modes("Transformer")
    places = {
        name: at.at(f"scratch-{mode}", mode=mode)
        for name, mode in modes.pop("names").items()
    }
    columns = {
        "NLPCC-18 F0.5": Score("F0.5 (references)"),
        "NLPCC-18 Speedup": speed_up,
    }
    of_edits = dict(
        zip(("P", "R", "F0.5"), map(Score, REFERENCE_EDITS), strict=True)
    ) | {"Speedup": speed_up}
    beam = "Transformer-big (beam=5)"
    return [
        beside(
            "ge2022/4",
            {name: place.row(columns) for name, place in places.items()},
            ours="F0.5 of characters against the references, where the paper's is of words and gold edits",
            **modes,
        ),
        beside(
            "sun2021/6",
            {
                beam: at.at("scratch-beam5", mode="beam5").row(of_edits),
                "Our approach (9+3)": deep.row(of_edits),
            },
            ours="of characters against the references, where the paper's are of words and gold edits",
            beam=beam,
        ),
    ]
