"""The tables that gec_small reproduces."""

from experiments.common_tables import (
    REFERENCE_EDITS,
    correctors,
    edits,
    longest_drafts,
    three_modes,
)
from experiments.measures import Score, iterations, seconds, speed_up
from experiments.tables import Own, beside, cell

METRICS = ["m2-references"]
F = Score("F0.5 (references)")


def papers(results):
    """Tables of the papers with this experiment's numbers; `test2` is JFLEG's test set."""
    jfleg, ours = (
        results.at(set="test2"),
        "JFLEG's test set, edits against its four references",
    )
    models, layers = "4+1 layers of 256, synthetic data alone", "layers of 192"
    modes = {"Beam=5": "beam5", "Greedy": "greedy", "Aggressive": "iad"}

    def on_cpu(records, columns, **fields):
        return {
            f"{name} threads": {
                c: results.at(mode=modes[c], record=record, **fields).get(speed_up)
                for c in columns
            }
            for name, record in records.items()
        }

    greedy = jfleg.at(mode="greedy", over="greedy", over_record="bench/depth-6-6")
    depths = {
        depth.replace("-", "+"): greedy.at(
            f"depth-{depth}-greedy", record=f"bench/depth-{depth}"
        )
        for depth in ("6-6", "9-3", "11-1")
    }
    of_depth = {"F0.5": F, "Total Latency": seconds, "Speedup": speed_up}
    sun = {
        f"with synthetic data ({name})": mode
        for name, mode in (
            ("beam=5", "beam5"),
            ("greedy", "greedy"),
            ("aggressive", "iad"),
        )
    }
    sun_beam, sun_greedy, _ = sun
    return [
        correctors(
            "ge2022/1",
            jfleg,
            edits(*REFERENCE_EDITS),
            ours=ours,
            differs=models,
            **three_modes("with synthetic data"),
        ),
        beside(
            "ge2022/12",
            on_cpu(
                {"6+6, 8": "bench/cpu-8", "6+6, 2": "bench/cpu-2"},
                ("Beam=5", "Aggressive"),
            ),
            ours="the synthetic test set's first sentences; two cores, so that 8 threads are too many",
            differs="4+1 layers of 256",
        ),
        correctors(
            "sun2021/1",
            jfleg,
            edits(*REFERENCE_EDITS),
            sun,
            differs=models,
            greedy=sun_greedy,
            beam=sun_beam,
            ours=f"{ours}; greedy decoding is the plugin's",
        ),
        longest_drafts(
            results,
            "test2",
            ours="JFLEG's test set, each setting decoded once",
            differs=models,
        ),
        beside(
            "sun2021/4",
            {name: place.row(of_depth) for name, place in depths.items()},
            ours=f"{ours}; times of its first sentences",
            differs=f"{layers}, synthetic data alone, a short training",
        ),
        beside(
            "sun2021/8",
            on_cpu(
                {"6+6, 2": "bench/depth-6-6", "9+3, 2": "bench/depth-9-3"},
                modes,
                over_record="bench/depth-6-6",
            ),
            differs=layers,
        ),
    ]


def depth(results):
    """12 layers, shared out between encoder and decoder; the first of `DEPTHS` in depth.sh is the baseline."""
    rows = {}
    for name in sorted(
        results.sizes("bench/depth-*"), key=lambda name: int(name.partition("-")[0])
    ):
        at = results.at(
            set="test2",
            record=f"bench/depth-{name}",
            over="greedy",
            over_record="bench/depth-6-6",
        )
        row = {}
        for mode, words in (("beam5", "beam 5"), ("greedy", "greedy")):
            place = at.at(f"depth-{name}-{mode}")
            row |= {
                f"GLEU, {words}": cell(place, Score("GLEU")),
                f"F0.5 (references), {words}": cell(place, F),
            }
        iad, form = at.at(mode="iad"), "{:.2f}x"
        row["beam 5, s"] = cell(at.at(mode="beam5"), seconds)
        row["greedy, s"] = cell(at.at(mode="greedy"), seconds)
        row["greedy over 6+6 greedy"] = cell(at.at(mode="greedy"), speed_up, form=form)
        row["IAD, s"] = cell(iad, seconds)
        row["IAD over 6+6 greedy"] = cell(iad, speed_up, form=form)
        row["IAD over 6+6 beam 5"] = cell(iad.at(over="beam5"), speed_up, form=form)
        row["IAD iterations"] = cell(iad, iterations)
        rows[name.replace("-", "+")] = row
    return [
        Own(
            "12 layers, shared out between encoder and decoder",
            "encoder + decoder",
            rows,
        )
    ]


OWN = {"depth": depth}
