"""The tables that wmt14_en_de reproduces. Tables of papers/001 have the numbers of papers/000 under other names."""

from experiments import common_tables as shared
from experiments import measures as m
from experiments.measures import Score
from experiments.tables import beside

OWN = {"quality": shared.quality}
BLEU = Score("compound BLEU")


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    first = shared.baselines(
        results, {"Iter.": m.iterations, "Speed": m.speed_up, "EN-DE": BLEU}
    )
    first["Transformer-base without distillation"] = results.at(
        "undistilled-beam5"
    ).row({"EN-DE": BLEU})
    memory = {"beam5": "beam5", "beam1": "beam1", "gad": "gad", "gad++": "gad++-5-3.0"}
    profile = results.at(mode="gad++-5-3.0", record="bench/profile")
    return [
        shared.block_drafter(results, BLEU, "3-1.0", "5-3.0", rows=first),
        of_xia_1(results),
        shared.block_sizes(
            results, BLEU, "ge2022/6", "AR (beam = 5)", "gad++-3-1.0-k{}"
        ),
        shared.block_sizes(results, BLEU, "xia2022/2", "AT (b = 5)", "gad++-3-1.0-k{}"),
        shared.tolerances(results, BLEU, "ge2022/7"),
        of_big(results, "ge2022/8", "NAR", "AR", "beam"),
        shared.tolerances(results, BLEU, "xia2022/3"),
        of_big(results, "xia2022/4", "NAT", "AT", "b"),
        of_mixed(results, "ge2022/9", "AR-base (greedy)", "base", "NAR-big"),
        of_mixed(results, "xia2022/5", "AT-Base (greedy)", "Base", "NAT-Big"),
        shared.pairs_of_14(results, BLEU, "WMT14 EN-DE", "EN→X", "3-1.0", "5-3.0"),
        shared.modules(results, "ge2022/15", ("AR", "NAR"), profile),
        shared.modules(results, "xia2022/7", ("AT", "NAT"), profile),
        *(
            beside(
                name,
                {
                    row: results.at(label, record="bench/memory").row(
                        {"Memory Util.": m.device_mib}
                    )
                    for row, label in zip(rows, memory.values(), strict=True)
                },
            )
            for name, rows in {
                "ge2022/16": ("AR (beam = 5)", "AR (beam = 1)", "GAD", "GAD++"),
                "xia2022/8": ("AT (b = 5)", "AT (greedy)", "GAD", "GAD++"),
            }.items()
        ),
        of_xia_6(results),
        of_xia_9(results),
    ]


def of_xia_1(results):
    """The pair, under papers/001's names."""
    columns = {"Iteration": m.iterations, "BLEU": BLEU, "Speed": m.speed_up}
    names = {
        "NAT drafter (k = 25)": "nar",
        "AT verifier (b = 5)": "beam5",
        "AT verifier (b = 1)": "beam1",
        "GAD (k = 25)": "gad",
        "GAD++ (k = 25, top-3, τ = 1.0)": "gad++-3-1.0",
        "GAD++ (k = 25, top-5, τ = 3.0)": "gad++-5-3.0",
    }
    rows = {name: results.at(label).row(columns) for name, label in names.items()}
    rows |= shared.baselines(results, columns)
    rows["Teacher, Transformer-big (b = 5)"] = results.at("teacher-beam5").row(
        {"BLEU": BLEU}
    )
    rows["Transformer-base without distillation (b = 5)"] = results.at(
        "undistilled-beam5"
    ).row({"BLEU": BLEU})
    but = shared.NO_FERTILITIES
    return beside(
        "xia2022/1",
        rows,
        but=but,
        greedy="AT verifier (b = 1)",
        beam="AT verifier (b = 5)",
    )


def of_big(results, name, drafter, verifier, beam):
    """The pair of big size."""
    columns = {"Iteration": m.iterations, "BLEU": BLEU, "Speed": m.speed_up}
    searches = {b: f"{verifier} verifier ({beam} = {b})" for b in (5, 1)}
    names = {
        f"{drafter} drafter (k = 30)": "nar",
        searches[5]: "beam5",
        searches[1]: "beam1",
        "GAD (k = 30)": "gad",
        "GAD++ (k = 30, top-3, τ = 1.0)": "gad++-3-1.0",
        "GAD++ (k = 30, top-5, τ = 6.0)": "gad++-5-6.0",
    }
    at = results.at(record="bench/big-bench")
    rows = {
        row: at.at(f"big-{mode}", mode=mode).row(columns) for row, mode in names.items()
    }
    rows[f"Teacher, Transformer-big ({beam} = 5)"] = at.at("teacher-beam5").row(
        {"BLEU": BLEU}
    )
    return beside(name, rows, greedy=searches[1], beam=searches[5])


def of_mixed(results, name, greedy, base, big):
    """A big drafter for a base verifier."""
    columns = {"Tok.": m.accepted_without_eos, "Iter.": m.iterations, "BLEU": BLEU}
    rows = {greedy: results.at("k30-beam1").row({"BLEU": BLEU})}
    for system, label in (
        (f"GAD-{base}", "gad"),
        (f"GAD++-{base} (top-3, τ = 1.0)", "gad++-3-1.0"),
        (f"GAD++-{base} (top-5, τ = 3.0)", "gad++-5-3.0"),
    ):
        rows[system] = results.at(f"k30-{label}").row(columns)
        rows[f"{system} with {big}"] = results.at(f"drafter-big-{label}").row(columns)
    return beside(name, rows, greedy=greedy)


def of_xia_6(results):
    """One teacher and an ensemble, pairs of both sizes."""
    rows, further = {}, {}
    for size, start, k, tau in (("Base", "", 25, "3.0"), ("Big", "big-", 30, "6.0")):
        greedy = f"{size}: AT verifier (b = 1)"
        engine = f"{greedy}, by `greedy`"
        further[engine] = greedy
        names = {
            f"{size}: NAT drafter": "nar",
            f"{size}: AT verifier (b = 5)": "beam5",
            greedy: "beam1",
            engine: "greedy",
            f"{size}: GAD (k = {k})": "gad",
            f"{size}: GAD++ (k = {k}, top-3, τ = 1.0)": "gad++-3-1.0",
            f"{size}: GAD++ (k = {k}, top-5, τ = {tau})": f"gad++-5-{tau}",
        }
        names |= (
            {"Teacher, Transformer-big (b = 5)": "teacher-beam5"}
            if size == "Base"
            else {}
        )
        for name, mode in names.items():
            rows[name] = row = {}
            for kind, before in (("Single", start), ("Ensemble", f"ensemble-{start}")):
                columns = {
                    f"{kind} Iter.": m.iterations,
                    f"{kind} BLEU": BLEU,
                    f"{kind} Speed": m.speed_up,
                }
                if mode == "greedy":
                    columns = {f"{kind} Speed": m.speed_up}
                row |= results.at(
                    f"{before}{mode}", mode=mode, record=f"bench/{before}bench"
                ).row(columns)
    greedy = "Base: AT verifier (b = 1)"
    return beside(
        "xia2022/6",
        rows,
        further=further,
        greedy=greedy,
        beam="Base: AT verifier (b = 5)",
    )


def of_xia_9(results):
    """Repetitions."""
    names = {
        "AT (greedy)": "beam1",
        "CMLM (T = 4)": "cmlm4-length3",
        "CMLM (T = 10)": "cmlm10-length3",
        "GAD": "gad",
        "GAD++": "gad++-3-1.0",
    }
    rows = {
        name: results.at(label).row({"BLEU": BLEU, "Rep.": Score("repetition %")})
        for name, label in names.items()
    }
    return beside("xia2022/9", rows, greedy="AT (greedy)")
