"""Tables that several experiments have alike; each experiment's tables.py names those that it has."""

from experiments import measures as m
from experiments.measures import Score
from experiments.tables import Cell, Own, beside, cell
from experiments.text_files import read_json_lines, read_lines

AR = ("AR verifier (beam = 5)", "AR verifier (beam = 1)")
BASELINES = {
    "NAT with fertility": "nat",
    "iNAT": "inat",
    "CMLM": "cmlm10",
    "LevT": "levt",
}
NO_FERTILITIES = {"NAT with fertility": "no fertilities"}
"""what differs in fairseq's model"""
EDITS, REFERENCE_EDITS = (
    ("M2 P", "M2 R", "M2 F0.5"),
    ("P (references)", "R (references)", "F0.5 (references)"),
)
"""columns of aggdec score"""
NOTHING = Cell((None,), "")
BLOCKS = ["2", "4", "6", "8", "10"]


def block_drafter(
    results,
    bleu,
    quality="3-1",
    efficiency="5-3",
    column="EN-DE",
    all_columns=True,
    differs="",
    verifier="",
    teacher="teacher-beam5",
    **more,
):
    """ge2022/5 of a pair: `quality` and `efficiency` are the labels of the two settings of GAD++."""
    beam5, beam1 = AR
    columns = {column: bleu, "Iter.": m.iterations, "Speed": m.speed_up}
    columns = {
        name: columns[name]
        for name in ("Iter.", "Speed", column)
        if all_columns or name == column
    }
    labels = {
        "NAR drafter (k = 25)": "nar",
        beam5: "beam5",
        beam1: "beam1",
        "GAD (k = 25)": "gad",
        "GAD++ (k = 25, high-quality)": f"gad++-{quality}",
        "GAD++ (k = 25, high-efficiency)": f"gad++-{efficiency}",
    }
    rows = {"Teacher": results.at(teacher).row({column: bleu})} if teacher else {}
    rows |= {name: results.at(label).row(columns) for name, label in labels.items()}
    rows |= more.pop("rows", {})
    but = (
        dict.fromkeys(["Teacher", beam5, beam1], verifier)
        | NO_FERTILITIES
        | more.pop("but", {})
    )
    return beside("ge2022/5", rows, differs, but, greedy=beam1, beam=beam5, **more)


def baselines(results, columns):
    """Rows of the other non-autoregressive models; their scores are of their own decoded outputs."""
    at = results.at(record="bench/baselines")
    return {name: at.at(label).row(columns) for name, label in BASELINES.items()}


def full_size_pair(results, column, row14, side14, quality, efficiency):
    """ge2022/5 and ge2022/14 of a full-size pair; `row14` and `side14` name its rows and columns in the second."""
    rows = baselines(results, {column: Score("BLEU")})
    rows["Transformer-base without distillation"] = results.at("undistilled-beam5").row(
        {column: Score("BLEU")}
    )
    first = block_drafter(
        results, Score("BLEU"), quality, efficiency, column, False, rows=rows
    )
    return [
        first,
        pairs_of_14(results, Score("BLEU"), row14, side14, quality, efficiency),
    ]


def pairs_of_14(results, bleu, pair, side, quality, efficiency):
    """ge2022/14."""
    columns = {
        f"{side} Iter.": m.iterations,
        f"{side} BLEU": bleu,
        f"{side} Speed": m.speed_up,
    }
    labels = {
        "AR verifier (beam = 1)": "beam1",
        "NAR drafter": "nar",
        "GAD": "gad",
        "GAD++ (high-quality)": f"gad++-{quality}",
        "GAD++ (high-efficiency)": f"gad++-{efficiency}",
    }
    rows = {
        f"{pair}: {name}": results.at(label).row(columns)
        for name, label in labels.items()
    }
    return beside("ge2022/14", rows, greedy=f"{pair}: AR verifier (beam = 1)")


def correctors(table, place, columns, names, **more):
    """A table of correctors or simplifiers; `names` are labels by the paper's row."""
    return beside(
        table,
        {name: place.at(label).row(columns) for name, label in names.items()},
        **more,
    )


def edits(precision, recall, f):
    """Columns of ge2022/1 and sun2021/1, of these columns of aggdec score."""
    scores = {"P": Score(precision), "R": Score(recall), "F0.5": Score(f)}
    return {"Total Latency": m.seconds, "Speedup": m.speed_up, **scores}


def summaries(results, differs="", verifier="", teachers=None, **more):
    """ge2022/10; `teachers` are rows of models that were only scored, with their labels."""
    beam5, beam1 = AR
    # the paper's R-L is files2rouge's, of sentences (docs/metrics.md)
    rouge = {"R-1": Score("R-1"), "R-2": Score("R-2"), "R-L": Score("R-Lsum")}
    rows = {
        name: results.at(label).row(rouge) for name, label in (teachers or {}).items()
    }
    names = {
        "NAR drafter (k = 25)": "nar",
        beam5: "beam5",
        beam1: "beam1",
        "GAD (k = 25)": "gad",
        "GAD++ (k = 25, top-3, τ = 1.0)": "gad++-3-1",
        "GAD++ (k = 25, top-5, τ = 3.0)": "gad++-5-3",
    }
    columns = {"Iteration": m.iterations, **rouge, "Speed": m.speed_up}
    rows |= {name: results.at(label).row(columns) for name, label in names.items()}
    but = dict.fromkeys(AR, verifier) if verifier else {}
    return beside("ge2022/10", rows, differs, but, greedy=beam1, beam=beam5, **more)


def three_modes(start="", aggressive="IAD"):
    """Fairseq's two searches and input-guided decoding: rows with their labels, and those to compare with."""
    names = {
        f"{start} (beam = 5)": "beam5",
        f"{start} (beam = 1)": "beam1",
        f"{start} ({aggressive})": "iad",
    }
    return {
        "names": names,
        "beam": f"{start} (beam = 5)",
        "greedy": f"{start} (beam = 1)",
    }


def longest_drafts(results, subset, **more):
    """sun2021/3: the longest draft."""
    at = results.at(set=subset, over="l-max-1")
    columns = {"Total Latency": m.decoding_seconds, "Speedup": m.decoding_speed_up}
    names = {
        "1 (Baseline)": "1",
        **{k: k for k in ("2", "3", "5", "10", "20", "40")},
        "Unlimited": "unlimited",
    }
    return beside(
        "sun2021/3",
        {name: at.at(f"l-max-{k}").row(columns) for name, k in names.items()},
        **more,
    )


def tolerances(results, bleu, name, **more):
    """ge2022/7 and xia2022/3: top-3 and top-5 with each tolerance."""
    rows = {}
    for tau in range(1, 6):
        rows[f"τ = {tau}"] = row = {}
        for beta in (3, 5):
            columns = {
                f"Top-{beta} Tok.": m.accepted_without_eos,
                f"Top-{beta} BLEU": bleu,
            }
            row |= results.at(f"gad++-{beta}-{tau}", set="valid").row(columns)
    return beside(name, rows, **more)


def block_sizes(
    results,
    bleu,
    name,
    whole,
    drafted,
    sizes=(10, 15, 20, 25, 30),
    subset="valid",
    **more,
):
    """ge2022/6 and xia2022/2: GAD++ by the drafter's k."""
    columns = {"Tok.": m.accepted_without_eos, "BLEU": bleu, "Speed": m.speed_up}
    rows = {
        whole: results.at("beam5", set=subset, record="bench/block-size-25").row(
            columns
        )
    }
    for k in sizes:
        at = results.at(
            drafted.format(k),
            set=subset,
            record=f"bench/block-size-{k}",
            mode="gad++-3-1",
        )
        rows[f"GAD++ (k = {k})"] = at.row(columns)
    return beside(name, rows, beam=whole, **more)


def modules(results, name, start, place, **more):
    """ge2022/15 and xia2022/7: time by module; names of rows begin with AR and NAR, or AT and NAT."""
    verifier, drafter = start
    names = {
        f"{verifier} Encoder": ["verifier's encoder"],
        f"{drafter} Encoder": ["drafter's encoder"],
        f"{drafter} Decoder": ["drafter"],
        f"{verifier} Decoder": ["verifier's decoder"],
        "Others": ["rest"],
        "Total": [],
    }
    columns = {
        row: {"Latency": m.module_ms(*parts), "Percent": m.module_percent(*parts)}
        for row, parts in names.items()
    }
    return beside(
        name, {row: place.row(measures) for row, measures in columns.items()}, **more
    )


def heads(results, one_head=False, **more):
    """stern2018/1: block sizes by how the heads were trained; `one_head`: whether one for k = 1 was, too."""
    kinds = {
        "Regular": "regular",
        "Distillation": "distilled",
        "Fine Tuning": "fine-tuned",
        "Both": "both",
    }
    base, rows = "base model (§7.1)", {}
    sizes = {base: ("{}-2", "greedy", 2)}
    if one_head:
        sizes = {base: ("base-{}", "greedy", 1), "k = 1": ("{}-1", "greedy", 2)}
    for end, mode in (
        ("", "blockwise"),
        (", top-2", "blockwise-2"),
        (", top-3", "blockwise-3"),
    ):
        sizes |= {f"k = {k}{end}": (f"{{}}-{k}", mode, 4) for k in BLOCKS}
    for name, (record, mode, columns) in sizes.items():
        rows[name] = row = {}
        for column, kind in list(kinds.items())[:columns]:
            place = results.at(
                mode=mode, record=f"blockwise_table/{record.format(kind)}"
            )
            row |= place.row(
                {f"{column} BLEU": m.timed_bleu, f"{column} Tok.": m.accepted_block}
            )
    rows |= more.pop("rows", {})
    return beside("stern2018/1", rows, greedy="k = 1" if one_head else base, **more)


def images(results, folder, **more):
    """stern2018/2: block sizes of super-resolution."""
    rows = {
        "k = 1": results.at(mode="greedy", record=f"{folder}/regular-2/record").row(
            {"Regular": m.accepted_block}
        )
    }
    for k in BLOCKS:
        rows[f"k = {k}"] = row = {}
        for column, kind, mode in (
            ("Regular", "regular", "blockwise"),
            ("Approximate", "regular", "approximate"),
            ("Fine Tuning", "fine-tuned", "blockwise"),
            ("Both", "fine-tuned", "approximate"),
        ):
            row |= results.at(mode=mode, record=f"{folder}/{kind}-{k}/record").row(
                {column: m.accepted_block}
            )
    return beside("stern2018/2", rows, **more)


def image_blocks(folder):
    """Function of a table of super-resolution: block, speed and quality of images, by their folder."""
    kinds = {
        "regular": ("regular", "blockwise"),
        "approximate": ("regular", "approximate"),
        "fine-tuned": ("fine-tuned", "blockwise"),
        "both": ("fine-tuned", "approximate"),
    }

    def tables(results):
        sizes = results.sizes(f"{folder}/regular-*/record") or BLOCKS
        greedy = results.at(
            mode="greedy", record=f"{folder}/regular-{sizes[0]}/record", over="greedy"
        )

        def rows(*measures, form="", first=True):
            found = (
                {"1": {"regular": cell(greedy, *measures, form=form)}} if first else {}
            )
            for k in sizes:
                places = {
                    column: greedy.at(mode=mode, record=f"{folder}/{kind}-{k}/record")
                    for column, (kind, mode) in kinds.items()
                }
                found[k] = {
                    column: cell(place, *measures, form=form)
                    for column, place in places.items()
                }
            return found

        speed = rows(m.speed_up, m.accepted_block, form="{:.2f}x ({:.2f})", first=False)
        bicubic = {"regular": cell(greedy, m.bicubic_psnr)}
        pixels = rows(m.psnr, m.greedy_pixels, form="{:.2f} / {:.1%}")
        title = "PSNR in dB / share of pixels that are those of the same model's greedy decoding"
        return [
            Own("Mean accepted block", "k", rows(m.accepted_block)),
            Own(
                "Speed-up over greedy decoding (mean accepted block)",
                "k",
                speed,
                ("speed-up over greedy decoding", "mean accepted block"),
            ),
            Own(title, "k", {**pixels, "bicubic interpolation": bicubic}),
        ]

    return tables


def examples(results):
    """Sentences of the stage `trace`, with the numbers of the files that their iterations are printed from."""
    files = {path.stem: path for path in sorted(results.work.glob("traces/*.jsonl"))}
    traces = {
        name: {
            one["id"]: one
            for _, one in read_json_lines(
                read_lines(path), str(path), "id", "seconds", "edit_ratio"
            )
        }
        for name, path in files.items()
    }
    greedy = traces.pop("greedy", {})
    tables = []
    for name, sentences in traces.items():
        rows = {}
        for number, one in sentences.items():
            over = (
                greedy[number]["seconds"] / one["seconds"] if number in greedy else None
            )
            rows[str(number)] = {
                "over greedy": Cell((over,), "{:.1f}x"),
                "edit ratio": Cell((one["edit_ratio"],), "{:.2f}"),
                "iterations": Cell((one["iterations"],), "{}"),
                "tokens": Cell((one["output_length"] + 1,), "{}"),
            }
        rows = dict(
            sorted(
                rows.items(),
                key=lambda row: row[1]["over greedy"].numbers[0] or 0,
                reverse=True,
            )
        )
        tables.append(
            Own(f"Sentences of traces/{name}.txt, each timed once", "sentence", rows)
        )
    return tables


def targets(results, *drafters):
    """What the stages of help_en_de_base have said of drafters that could not learn from the verifier's output."""
    files = (results.work / drafter / "targets" for drafter in drafters)
    return "".join(
        dict.fromkeys(
            f", {file.read_text().strip()}" for file in files if file.is_file()
        )
    )


def papers_drafter(results):
    """The papers' drafter beside this plugin's, k = 10."""
    drafts = m.module_ms("drafter", "drafter's encoder", an_iteration=True)
    rows = {}
    for mode, words in (
        ("nar", "alone"),
        ("gad", "GAD"),
        ("gad++-3-1", "GAD++ (top-3, τ = 1)"),
        ("gad++-5-3", "GAD++ (top-5, τ = 3)"),
    ):
        places = {f"this plugin's, {words}": results.at(mode)}
        for size in results.sizes("bench/papers-drafter-*") or ["2-10", "6-25"]:
            layers, k = size.split("-")
            places[f"papers', {layers} layers, k = {k}, {words}"] = results.at(
                f"papers-{size}-{mode}",
                mode=mode,
                record=f"bench/papers-drafter-{size}",
            )
        for name, place in places.items():
            alone = mode == "nar"
            rows[name] = {
                "BLEU": cell(place, m.timed_bleu),
                "iterations a sentence": cell(place, m.iterations),
                "tokens an iteration": NOTHING
                if alone
                else cell(place, m.accepted_tokens),
                "over beam 5": cell(place, m.speed_up, form="{:.2f}x"),
                "over greedy": cell(
                    place.at(over="greedy"), m.speed_up, form="{:.2f}x"
                ),
                "ms a draft": NOTHING if alone else cell(place, drafts),
            }
    told = targets(results, "drafter", "papers-drafter-6-25")
    return [
        Own(
            f"The papers' drafter beside this plugin's of 2 layers, k = 10{told}",
            "drafter",
            rows,
        )
    ]


def drafter_ablation(results):
    """Drafters that each differ in one setting, trained for the same short time."""
    groups = {
        "prefix attention": ["causal-r1", "bidirectional-r1"],
        "blocks a sentence (R)": ["causal-r1", "base", "causal-r8"],
        "decoder layers": ["depth1", "base", "depth6"],
        "encoder": ["base", "own-encoder"],
        "transition head": ["base", "no-transitions"],
        "glancing": ["base", "glancing"],
    }
    tables = []
    for title, variants in groups.items():
        beside_it = tuple(f"ablation/{variant}" for variant in variants)
        rows = {}
        for variant, folder in zip(variants, beside_it, strict=True):
            at = results.at(
                mode="gad",
                record=f"{folder}/bench",
                training=folder,
                beside=beside_it,
                over="greedy",
            )
            rows[variant] = {
                "updates": cell(at, m.updates, form="{:.0f}"),
                "training steps, s": cell(at, m.training_seconds, form="{:.0f}"),
                "accepted (valid)": cell(at, m.best_accepted),
                "s to the same accepted": cell(
                    at,
                    m.seconds_to_common_accepted,
                    m.common_accepted,
                    form="{:.0f} (to {:.2f})",
                ),
                "mean accepted tokens (GAD)": cell(at, m.accepted_tokens),
                "ms per drafter call": cell(
                    at, m.module_ms("drafter", an_iteration=True)
                ),
                "drafter's encoder, ms per sentence": cell(
                    at, m.module_ms("drafter's encoder")
                ),
                "GAD over greedy": cell(at, m.speed_up, form="{:.2f}x"),
            }
        tables.append(Own(title, "variant", rows))
    return tables


def quality(results):
    """BLEU and speed of all modes and baselines (papers/001 Figure 1)."""
    names = {
        "beam 5": "beam5",
        "greedy": "greedy",
        "GAD": "gad",
        "GAD++ (top-3, τ = 1)": "gad++-3-1",
    }
    names |= {
        f"GAD++ (top-{beta}, τ = {tau})": f"gad++-{beta}-{tau}"
        for beta, tau in ((3, "1.0"), (3, "2.0"), (5, "3.0"), (5, "4.0"), (5, "6.0"))
    }
    names |= {
        "drafter alone": "nar",
        "NAT": "nat",
        "iNAT": "inat",
        "CMLM (4 passes)": "cmlm4",
        "CMLM (10 passes)": "cmlm10",
        "LevT": "levt",
    }
    at = results.at(record="bench/baselines")
    rows = {
        name: {
            "BLEU and speed-up over beam 5": cell(
                at.at(label), m.timed_bleu, m.speed_up, form="{:.2f} at {:.1f}x"
            )
        }
        for name, label in names.items()
    }
    labels = ("BLEU", "speed-up over fairseq's beam of 5")
    return [Own("BLEU and speed, all in one run", "decoding", rows, labels)]


def blockwise_table(results):
    """Proposal heads by block size and training (papers/004 Table 1 and Figure 4)."""
    kinds = ("regular", "distilled", "fine-tuned", "both")
    found = {k for kind in kinds for k in results.sizes(f"blockwise_table/{kind}-*")}
    sizes = sorted(found or BLOCKS, key=int)

    def cells(k, mode, *measures, form="", only=kinds):
        at = results.at(mode=mode, over="greedy")
        return {
            kind: cell(
                at.at(record=f"blockwise_table/{kind}-{k}"), *measures, form=form
            )
            for kind in only
        }

    both = m.timed_bleu, m.accepted_block
    at = results.at(mode="greedy")
    base = {"regular": cell(at.at(record="blockwise_table/base-regular"), *both)}
    rows = {"base model": base, "1": cells(sizes[0], "greedy", *both, only=kinds[:2])}
    for end, mode in (
        ("", "blockwise"),
        (", top-2", "blockwise-2"),
        (", top-3", "blockwise-3"),
    ):
        rows |= {f"{k}{end}": cells(k, mode, *both) for k in sizes if k != "1"}
    speed = {
        k: cells(k, "blockwise", m.speed_up, m.accepted_block, form="{:.2f}x ({:.2f})")
        for k in sizes
    }
    title = "Speed-up over greedy decoding"
    return [
        Own("BLEU / mean accepted block", "k", rows, ("BLEU", "mean accepted block")),
        Own(
            f"{title} (mean accepted block)",
            "k",
            speed,
            ("speed-up over greedy decoding", "mean accepted block"),
        ),
    ]
