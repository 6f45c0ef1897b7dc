"""The tables that tatoeba_en_de reproduces."""

from experiments import common_tables as shared
from experiments import measures as m
from experiments.measures import Score
from experiments.tables import beside

METRICS = ["repetition"]
OWN = {
    "quality": shared.quality,
    "papers_drafter": shared.papers_drafter,
    "blockwise_table": shared.blockwise_table,
    "ablation": shared.drafter_ablation,
}
BLEU = Score("sacrebleu")
VERIFIER, OURS = "4+3 layers of 256", "sacrebleu of Tatoeba sentences"
DRAFTER = "transition head, causal prefix, no glancing"
PAIR = f"verifier of {VERIFIER}; drafter with k = 10, 2 layers of 256, {DRAFTER}"
SHORT = "a short training that begins with the verifier"


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        of_ge_5(results),
        shared.block_sizes(
            results,
            BLEU,
            "ge2022/6",
            "AR (beam = 5)",
            "gad++-3-1-k{}",
            ours=OURS,
            differs=f"verifier of {VERIFIER}; drafter of 2 layers of 256, {DRAFTER}, a short training",
            but={"AR (beam = 5)": VERIFIER},
        ),
        shared.tolerances(results, BLEU, "ge2022/7", ours=OURS, differs=PAIR),
        of_ge_9(results),
        shared.modules(
            results,
            "ge2022/15",
            ("AR", "NAR"),
            results.at(mode="gad++-5-3"),
            differs=PAIR,
            ours="the drafter shares the verifier's encoder",
        ),
        beside(
            "ge2022/16",
            {
                name: results.at(label, record="bench/memory").row(
                    {"Memory Util.": m.host_mib}
                )
                for name, label in {
                    "AR (beam = 5)": "beam5",
                    "AR (beam = 1)": "beam1",
                    "GAD": "gad",
                    "GAD++": "gad++-5-3",
                }.items()
            },
            ours="resident memory of a process on a CPU, Python and libraries included",
            differs=PAIR,
            but={"AR (beam = 5)": VERIFIER, "AR (beam = 1)": VERIFIER},
        ),
        shared.tolerances(results, BLEU, "xia2022/3", ours=OURS, differs=PAIR),
        of_xia_6(results),
        of_xia_9(results),
        shared.heads(
            results,
            differs=f"base of {VERIFIER}, which is head 1; heads 512 wide, each its own; few updates",
            but={"k = 1": VERIFIER},
        ),
    ]


def of_ge_5(results):
    """The pair, with other non-autoregressive models and the papers' own drafters beside this plugin's."""
    names = {
        "NAR drafter: the papers' of {}": "nar",
        "GAD: the papers' drafter of {}": "gad",
        "GAD++: the papers' of {}, high-quality": "gad++-3-1",
        "GAD++: the papers' of {}, high-efficiency": "gad++-5-3",
    }
    compared = [
        "NAR drafter (k = 25)",
        "GAD (k = 25)",
        "GAD++ (k = 25, high-quality)",
        "GAD++ (k = 25, high-efficiency)",
    ]
    columns = {"Iter.": m.iterations, "Speed": m.speed_up, "EN-DE": m.timed_bleu}
    rows = shared.baselines(results, columns | {"EN-DE": BLEU})
    further, but = {}, dict.fromkeys(rows, f"{VERIFIER}, {SHORT}")
    but["NAT with fertility"] += ", no fertilities"
    for (name, mode), system in zip(names.items(), compared, strict=True):
        for layers, k in ((6, 25), (2, 10)):
            row = name.format(f"{layers} layers (k = {k})")
            place = results.at(
                f"papers-{layers}-{k}-{mode}",
                mode=mode,
                record=f"bench/papers-drafter-{layers}-{k}",
            )
            rows[row], further[row] = place.row(columns), system
            but[row] = (
                f"verifier of {VERIFIER}; drafter of that width, from the verifier's weights, a short training"
            )
    more = {
        "ours": OURS,
        "differs": PAIR,
        "verifier": VERIFIER,
        "rows": rows,
        "but": but,
        "further": further,
    }
    return shared.block_drafter(results, BLEU, **more)


def of_ge_9(results):
    """A big drafter for a base verifier."""
    names = {
        "GAD-base": "gad",
        "GAD++-base (top-3, τ = 1.0)": "gad++-3-1",
        "GAD++-base (top-5, τ = 3.0)": "gad++-5-3",
    }
    columns = {"Tok.": m.accepted_without_eos, "Iter.": m.iterations, "BLEU": BLEU}
    rows = {"AR-base (greedy)": results.at("beam1").row({"BLEU": BLEU})}
    for name, mode in names.items():
        rows[name] = results.at(f"two-layers-{mode}").row(columns)
        rows[f"{name} with NAR-big"] = results.at(f"six-layers-{mode}").row(columns)
    differs = (
        f"verifier of {VERIFIER}; drafters of that width, {DRAFTER}, a short training"
    )
    ours = f"{OURS}; in place of the big drafter one of 6 layers, of its own one of 2"
    return beside("ge2022/9", rows, differs, ours=ours, greedy="AR-base (greedy)")


def of_xia_6(results):
    """One teacher and an ensemble of three."""
    names = {
        "Teacher, Transformer-big (b = 5)": "teacher-beam5",
        "Base: NAT drafter": "nar",
        "Base: AT verifier (b = 5)": "beam5",
        "Base: AT verifier (b = 1)": "beam1",
        "Base: GAD (k = 25)": "gad",
        "Base: GAD++ (k = 25, top-3, τ = 1.0)": "gad++-3-1",
        "Base: GAD++ (k = 25, top-5, τ = 3.0)": "gad++-5-3",
    }
    rows = {}
    for name, mode in names.items():
        rows[name] = row = {}
        for kind, start, record in (
            ("Single", "", "bench/bench"),
            ("Ensemble", "ensemble-", "bench/ensemble-bench"),
        ):
            columns = {
                f"{kind} Iter.": m.iterations,
                f"{kind} BLEU": BLEU,
                f"{kind} Speed": m.speed_up,
            }
            row |= results.at(f"{start}{mode}", mode=mode, record=record).row(columns)
    ours = (
        f"{OURS}; all models of {VERIFIER}; the drafter of the ensemble is undertrained"
    )
    but = {
        name: VERIFIER for name in names if "AT verifier" in name or "Teacher" in name
    }
    return beside(
        "xia2022/6",
        rows,
        PAIR,
        but,
        ours=ours,
        greedy="Base: AT verifier (b = 1)",
        beam="Base: AT verifier (b = 5)",
    )


def of_xia_9(results):
    """Repetitions."""
    names = {
        "AT (greedy)": "greedy",
        "CMLM (T = 4)": "cmlm4-length3",
        "CMLM (T = 10)": "cmlm10-length3",
        "GAD": "gad",
        "GAD++": "gad++-3-1",
    }
    rows = {
        name: results.at(label).row({"BLEU": BLEU, "Rep.": Score("repetition %")})
        for name, label in names.items()
    }
    but = {name: f"{VERIFIER}, {SHORT}" for name in names if "CMLM" in name} | {
        "AT (greedy)": VERIFIER
    }
    return beside("xia2022/9", rows, PAIR, but, greedy="AT (greedy)")
