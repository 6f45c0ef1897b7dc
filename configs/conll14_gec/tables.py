"""The tables that conll14_gec reproduces."""

from experiments.common_tables import EDITS, edits, longest_drafts
from experiments.measures import Score, seconds, speed_up
from experiments.tables import beside

F = {"F0.5": Score("M2 F0.5"), "Speedup": speed_up}
DATA = {"scratch": "without synthetic data", "finetune": "with synthetic data"}


def papers(results):
    """Tables of the papers with this experiment's numbers; `valid` is CoNLL-13."""
    valid, columns = results.at(set="valid"), edits(*EDITS)

    def by_data(modes):
        return {
            f"{words} ({name})": valid.at(
                f"{data}-{mode}", mode=mode, record=f"bench/valid-{data}"
            ).row(columns)
            for data, words in DATA.items()
            for name, mode in modes.items()
        }

    cpu = {
        f"{layers}, {n} threads": results.at(
            record=f"bench/cpu-scratch{end}-{n}", over_record=f"bench/cpu-scratch-{n}"
        )
        for n in (8, 2)
        for layers, end in (("6+6", ""), ("9+3", "-9-3"))
    }
    modes = {"Beam=5": "beam5", "Greedy": "greedy", "Aggressive": "iad"}
    on_cpu = {
        name: {
            column: place.at(mode=mode).get(speed_up) for column, mode in modes.items()
        }
        for name, place in cpu.items()
    }
    depths = {"6+6": valid.at("scratch-greedy", record="bench/depth")}
    for depth in ("3-6", "9-6", "6-3", "6-9", "7-5", "8-4", "9-3", "10-2", "11-1"):
        depths[depth.replace("-", "+")] = valid.at(
            f"scratch-{depth}-greedy", record=f"bench/depth-{depth}"
        )
    layers = {"F0.5": Score("M2 F0.5"), "Total Latency": seconds, "Speedup": speed_up}
    of_test = {"P": Score("M2 P"), "R": Score("M2 R"), **F}
    tests = {}
    for data, words in {
        "scratch": "no synthetic data",
        "finetune": "synthetic data",
    }.items():
        at = results.at(record=f"bench/test-{data}")
        tests[f"{words}: Transformer-big (beam=5)"] = at.at(
            f"{data}-beam5", mode="beam5"
        ).row(of_test)
        deep = at.at(
            f"{data}-9-3-iad",
            mode="iad",
            record=f"bench/test-{data}-9-3",
            over_record=at.record,
        )
        tests[f"{words}: Our approach (9+3)"] = deep.row(of_test)
    big = results.at("finetune-beam5", record="bench/test-finetune", mode="beam5")
    first, second = "with synthetic data (beam = {})", "with synthetic data ({})"
    return [
        beside(
            "ge2022/1",
            by_data({"beam = 5": "beam5", "beam = 1": "beam1", "IAD": "iad"}),
            greedy=first.format(1),
            beam=first.format(5),
        ),
        beside(
            "sun2021/1",
            by_data({"beam=5": "beam5", "greedy": "greedy", "aggressive": "iad"}),
            greedy=second.format("greedy"),
            beam=second.format("beam=5"),
        ),
        beside("ge2022/3", {"Transformer-big (beam = 5)": big.row(F)}),
        beside(
            "ge2022/12",
            {
                name: {c: n for c, n in on_cpu[name].items() if c != "Greedy"}
                for name in ("6+6, 8 threads", "6+6, 2 threads")
            },
        ),
        beside("sun2021/8", on_cpu),
        longest_drafts(results, "valid"),
        beside(
            "sun2021/4",
            {
                name: place.at(
                    mode="greedy", over="greedy", over_record="bench/depth"
                ).row(layers)
                for name, place in depths.items()
            },
        ),
        beside("sun2021/5", tests),
    ]
