"""Tables without a counterpart in a paper: each is a function of an experiment's results. `tables.yaml` names them.

What stands in a cell is written like an f-string of measures: `{timed_bleu:.2f} at {speed_up:.1f}x`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from string import Formatter

from experiments.measures import measured
from experiments.results import Place, Results
from experiments.tables import Grid
from experiments.text_files import read_json_lines, read_lines
from fairseq_aggdec.lab.grid import DASH

BLOCKS = ["2", "4", "6", "8", "10"]
"""block sizes of tables of which nothing was measured"""
ACCEPTED = "mean accepted block"
FASTER = "speed-up over greedy decoding"


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str = DASH
    """a dash if none of its numbers was measured"""
    numbers: tuple[float | None, ...] = ()


def cell(place: Place, form: str) -> Cell:
    """A cell with numbers of a place; one that was not measured is a dash."""
    text = ""
    numbers = []
    for words, name, digits, _ in Formatter().parse(form):
        text += words
        if name is not None:
            number = measured(place, name)
            text += DASH if number is None else format(number, digits or "")
            numbers.append(number)
    if all(number is None for number in numbers):
        return Cell()
    return Cell(text, tuple(numbers))


def cells(place: Place, forms: Mapping[str, str]) -> dict[str, Cell]:
    """The cells of a row, by column."""
    return {column: cell(place, form) for column, form in forms.items()}


@dataclass(frozen=True)
class ExperimentTable:
    """A table of cells."""

    title: str
    first: str
    """heading of the first column, which has the rows' names"""
    rows: Mapping[str, Mapping[str, Cell]]
    """cells by row and column"""
    figure: tuple[str, str] | None = None
    """labels of the y and x axis if the table can be drawn: each cell has two numbers then"""

    @property
    def columns(self) -> list[str]:
        """The columns in the order in which rows name them."""
        return [*dict.fromkeys(column for row in self.rows.values() for column in row)]

    def grid(self) -> Grid | None:
        """The rows that have a measured number; None if there are none."""
        rows = []
        for name, row in self.rows.items():
            texts = [row.get(column, Cell()).text for column in self.columns]
            if any(text != DASH for text in texts):
                rows.append([name, *texts])
        headers = [self.first, *self.columns]
        return Grid(self.title, headers, rows, numbers=False) if rows else None


def quality(results: Results) -> list[ExperimentTable]:
    """BLEU and speed of all modes and baselines (papers/001 Figure 1)."""
    names = {
        "beam 5": "beam5",
        "greedy": "greedy",
        "GAD": "gad",
        "GAD++ (top-3, τ = 1)": "gad++-3-1",
        "GAD++ (top-3, τ = 2)": "gad++-3-2",
        "GAD++ (top-5, τ = 3)": "gad++-5-3",
        "GAD++ (top-5, τ = 4)": "gad++-5-4",
        "GAD++ (top-5, τ = 6)": "gad++-5-6",
        "drafter alone": "nar",
        "NAT": "nat",
        "iNAT": "inat",
        "CMLM (4 passes)": "cmlm4",
        "CMLM (10 passes)": "cmlm10",
        "LevT": "levt",
    }
    forms = {"BLEU and speed-up over beam 5": "{timed_bleu:.2f} at {speed_up:.1f}x"}
    rows = {
        name: cells(results.at(label, record="bench/baselines"), forms)
        for name, label in names.items()
    }
    axes = ("BLEU", "speed-up over fairseq's beam of 5")
    return [ExperimentTable("BLEU and speed, all in one run", "decoding", rows, axes)]


def papers_drafter(results: Results) -> list[ExperimentTable]:
    """The papers' drafter beside this plugin's, k = 10."""
    rows = {}
    for mode, words in {
        "nar": "alone",
        "gad": "GAD",
        "gad++-3-1": "GAD++ (top-3, τ = 1)",
        "gad++-5-3": "GAD++ (top-5, τ = 3)",
    }.items():
        # this drafter, then those of each size
        places = {f"this plugin's, {words}": results.at(mode)}
        for size in results.sizes("bench/papers-drafter-*") or ["2-10", "6-25"]:
            layers, k = size.split("-")
            places[f"papers', {layers} layers, k = {k}, {words}"] = results.at(
                f"papers-{size}-{mode}",
                mode=mode,
                record=f"bench/papers-drafter-{size}",
            )
        # a row for each
        for name, at in places.items():
            over_greedy = at.at(over="greedy", modules=("drafter", "drafter's encoder"))
            beside_beam = {
                "BLEU": "{timed_bleu:.2f}",
                "iterations a sentence": "{iterations:.2f}",
                "tokens an iteration": "{accepted_tokens:.2f}",
                "over beam 5": "{speed_up:.2f}x",
            }
            beside_greedy = {
                "over greedy": "{speed_up:.2f}x",
                "ms a draft": "{module_ms_an_iteration:.2f}",
            }
            rows[name] = cells(at, beside_beam) | cells(over_greedy, beside_greedy)
            if mode == "nar":  # every token is the drafter's
                rows[name] |= {"tokens an iteration": Cell(), "ms a draft": Cell()}
    said = results.targets("drafter", "papers-drafter-6-25")
    title = f"The papers' drafter beside this plugin's of 2 layers, k = 10{said}"
    return [ExperimentTable(title, "drafter", rows)]


def ablation(results: Results) -> list[ExperimentTable]:
    """Drafters that each differ in one setting, trained for the same short time."""
    groups = {
        "prefix attention": ["causal-r1", "bidirectional-r1"],
        "blocks a sentence (R)": ["causal-r1", "base", "causal-r8"],
        "decoder layers": ["depth1", "base", "depth6"],
        "encoder": ["base", "own-encoder"],
        "transition head": ["base", "no-transitions"],
        "glancing": ["base", "glancing"],
    }
    of_training = {
        "updates": "{updates:.0f}",
        "training steps, s": "{training_seconds:.0f}",
        "accepted (valid)": "{best_accepted:.2f}",
        # which all trainings of the table reach
        "s to the same accepted": "{seconds_to_common_accepted:.0f} (to {common_accepted:.2f})",
        "mean accepted tokens (GAD)": "{accepted_tokens:.2f}",
        "ms per drafter call": "{module_ms_an_iteration:.2f}",
    }
    tables = []
    for title, variants in groups.items():
        folders = tuple(f"ablation/{variant}" for variant in variants)
        rows = {}
        for variant, folder in zip(variants, folders, strict=True):
            at = results.at(
                mode="gad",
                record=f"{folder}/bench",
                trained_in=folder,
                beside=folders,
                over="greedy",
                modules=("drafter",),
            )
            encoder = at.at(modules=("drafter's encoder",))
            rows[variant] = {
                **cells(at, of_training),
                "drafter's encoder, ms per sentence": cell(encoder, "{module_ms:.2f}"),
                "GAD over greedy": cell(at, "{speed_up:.2f}x"),
            }
        tables.append(ExperimentTable(title, "variant", rows))
    return tables


def blockwise_table(results: Results) -> list[ExperimentTable]:
    """Proposal heads by block size and training (papers/004 Table 1 and Figure 4)."""
    kinds = ["regular", "distilled", "fine-tuned", "both"]
    measured_sizes = {
        k for kind in kinds for k in results.sizes(f"blockwise_table/{kind}-*")
    }
    sizes = sorted(measured_sizes or BLOCKS, key=int)

    def row(mode: str, k: str, form: str) -> dict[str, Cell]:
        at = results.at(mode=mode, over="greedy")
        return {
            kind: cell(at.at(record=f"blockwise_table/{kind}-{k}"), form)
            for kind in kinds
        }

    both = "{timed_bleu:.2f} / {accepted_block:.2f}"
    # the models without and with proposal heads
    base = results.at(mode="greedy", record="blockwise_table/base-regular")
    rows = {"base model": {"regular": cell(base, both)}}
    unverified = row("greedy", sizes[0], both)
    rows["1"] = {kind: unverified[kind] for kind in ("regular", "distilled")}
    modes = {"": "blockwise", ", top-2": "blockwise-2", ", top-3": "blockwise-3"}
    for end, mode in modes.items():
        rows |= {f"{k}{end}": row(mode, k, both) for k in sizes if k != "1"}
    # exact blockwise decoding over greedy decoding by the same model
    faster = {
        k: row("blockwise", k, "{speed_up:.2f}x ({accepted_block:.2f})") for k in sizes
    }
    return [
        ExperimentTable(f"BLEU / {ACCEPTED}", "k", rows, ("BLEU", ACCEPTED)),
        speed_table(faster),
    ]


def speed_table(rows: Mapping[str, Mapping[str, Cell]]) -> ExperimentTable:
    """Speed-ups and accepted blocks by block size."""
    title = f"{FASTER.capitalize()} ({ACCEPTED})"
    return ExperimentTable(title, "k", rows, (FASTER, ACCEPTED))


def images(folder: str, results: Results) -> list[ExperimentTable]:
    """Super-resolution: block, speed and quality of the images in a folder."""
    kinds = {
        "regular": ("regular", "blockwise"),
        "approximate": ("regular", "approximate"),
        "fine-tuned": ("fine-tuned", "blockwise"),
        "both": ("fine-tuned", "approximate"),
    }
    sizes = results.sizes(f"{folder}/regular-*/record") or BLOCKS
    first = f"{folder}/regular-{sizes[0]}/record"
    greedy = results.at(mode="greedy", record=first, over="greedy")

    def rows(form: str) -> dict[str, dict[str, Cell]]:
        return {
            k: {
                column: cell(
                    greedy.at(mode=mode, record=f"{folder}/{kind}-{k}/record"), form
                )
                for column, (kind, mode) in kinds.items()
            }
            for k in sizes
        }

    def with_greedy(form: str) -> dict[str, dict[str, Cell]]:
        return {"1": {"regular": cell(greedy, form)}, **rows(form)}

    # the three tables
    faster = rows("{speed_up:.2f}x ({accepted_block:.2f})")
    pixels = with_greedy("{psnr:.2f} / {greedy_pixels:.1%}")
    bicubic = {"regular": cell(greedy, "{bicubic_psnr:.2f}")}
    return [
        ExperimentTable(
            ACCEPTED.capitalize(), "k", with_greedy("{accepted_block:.2f}")
        ),
        speed_table(faster),
        ExperimentTable(
            "PSNR in dB / share of pixels that are those of the same model's greedy decoding",
            "k",
            {**pixels, "bicubic interpolation": bicubic},
        ),
    ]


def examples(results: Results) -> list[ExperimentTable]:
    """Sentences of the stage `trace`, with the numbers of the files that their iterations are printed from."""
    fields = ("id", "seconds", "edit_ratio")
    traces = {
        path.stem: {
            sentence["id"]: sentence
            for _, sentence in read_json_lines(read_lines(path), str(path), *fields)
        }
        for path in sorted(results.work.glob("traces/*.jsonl"))
    }
    greedy = traces.pop("greedy", {})
    tables = []
    for name, sentences in traces.items():
        # over greedy decoding, the fastest first
        faster = {
            number: greedy[number]["seconds"] / sentence["seconds"]
            for number, sentence in sentences.items()
            if number in greedy
        }
        rows = {}
        for number in sorted(sentences, key=lambda number: -faster.get(number, 0)):
            sentence = sentences[number]
            rows[str(number)] = {
                "over greedy": Cell(
                    f"{faster[number]:.1f}x" if number in faster else DASH
                ),
                "edit ratio": Cell(f"{sentence['edit_ratio']:.2f}"),
                "iterations": Cell(f"{sentence['iterations']}"),
                "tokens": Cell(f"{sentence['output_length'] + 1}"),
            }
        title = f"Sentences of traces/{name}.txt, each timed once"
        tables.append(ExperimentTable(title, "sentence", rows))
    return tables


def depth(results: Results) -> list[ExperimentTable]:
    """gec_small: 12 layers, shared out between encoder and decoder, over 6+6 layers."""
    scores = {"GLEU": "{GLEU:.2f}", "F0.5 (references)": "{F0.5 (references):.2f}"}
    rows = {}
    for layers in results.sizes("bench/depth-*"):
        at = results.at(
            set="test2",
            record=f"bench/depth-{layers}",
            over="greedy",
            over_record="bench/depth-6-6",
        )
        beam = at.at(f"depth-{layers}-beam5", mode="beam5")
        greedy = at.at(f"depth-{layers}-greedy", mode="greedy")
        iad = at.at(mode="iad")
        rows[layers.replace("-", "+")] = {
            **{f"{name}, beam 5": cell(beam, form) for name, form in scores.items()},
            **{f"{name}, greedy": cell(greedy, form) for name, form in scores.items()},
            "beam 5, s": cell(beam, "{seconds:.2f}"),
            "greedy, s": cell(greedy, "{seconds:.2f}"),
            "greedy over 6+6 greedy": cell(greedy, "{speed_up:.2f}x"),
            "IAD, s": cell(iad, "{seconds:.2f}"),
            "IAD over 6+6 greedy": cell(iad, "{speed_up:.2f}x"),
            "IAD over 6+6 beam 5": cell(iad.at(over="beam5"), "{speed_up:.2f}x"),
            "IAD iterations": cell(iad, "{iterations:.2f}"),
        }
    title = "12 layers, shared out between encoder and decoder"
    return [ExperimentTable(title, "encoder + decoder", rows)]


def models(results: Results) -> list[ExperimentTable]:
    """outside: tokens, passes and times of each model, and the time of the best length by hand."""
    rows = {}
    for name in ("transliterator", "stress_marker", "molecule_editor"):
        at = results.at(record=f"bench/{name}")
        iad = at.at("iad")
        greedy = at.at("greedy")
        papers = at.at("iad, paper's rule")
        row = {
            "sentences as `greedy`": cell(iad, "{as_greedy}"),
            "tokens": cell(greedy, "{output_tokens:.1f}"),
            "passes, paper's rule": cell(papers, "{iterations:.1f}"),
            "passes, `iad`": cell(iad, "{iterations:.1f}"),
            "ms, fairseq's beam 1": cell(at.at("beam1"), "{milliseconds:.1f}"),
            "`greedy`": cell(greedy, "{milliseconds:.2f}"),
            "`iad`, paper's rule": cell(papers, "{milliseconds:.2f}"),
            "`iad`": cell(iad, "{milliseconds:.2f}"),
        }
        if record := results.record(at.record):
            by_hand = [run for run in record.runs if run.mode.endswith(" at most")]
            best = min(by_hand, key=lambda run: run.milliseconds).mode
            form = f"{{milliseconds:.2f}} ({best.removeprefix('iad, ')})"
            row["best by hand"] = cell(at.at(best), form)
        rows[name.replace("_", " ")] = row
    title = "Models of others: tokens, passes and milliseconds of a sentence"
    return [ExperimentTable(title, "model", rows)]


TABLES: dict[str, Callable[[Results], list[ExperimentTable]]] = {
    "quality": quality,
    "papers_drafter": papers_drafter,
    "ablation": ablation,
    "blockwise_table": blockwise_table,
    "blocks": partial(images, "table"),
    "blocks_rgb": partial(images, "table_rgb"),
    "examples": examples,
    "depth": depth,
    "models": models,
}
