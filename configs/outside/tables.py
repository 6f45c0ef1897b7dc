"""The table of models that others trained."""

from experiments.measures import iterations
from experiments.tables import Own, cell


def papers(results):
    """None: no paper decodes these models."""
    return []


def tokens(place):
    """Tokens of an output, its end counted."""
    counts = place.run and place.run.counts
    return counts and counts.tokens / counts.sentences


def milliseconds(place):
    """Of a sentence, alone."""
    return place.run and place.run.milliseconds


def as_greedy(place):
    """Sentences with the output of `greedy`."""
    return place.run and place.run.counts.identical


COLUMNS = {
    "sentences as `greedy`": ("iad", as_greedy, "{}"),
    "tokens": ("greedy", tokens, "{:.1f}"),
    "passes, paper's rule": ("iad, paper's rule", iterations, "{:.1f}"),
    "passes, `iad`": ("iad", iterations, "{:.1f}"),
    "ms, fairseq's beam 1": ("beam1", milliseconds, "{:.1f}"),
    "`greedy`": ("greedy", milliseconds, "{:.2f}"),
    "`iad`, paper's rule": ("iad, paper's rule", milliseconds, "{:.2f}"),
    "`iad`": ("iad", milliseconds, "{:.2f}"),
}
"""{heading: mode, number and its form}"""


def models(results):
    """Tokens, passes and times of each model, and the time of the best length by hand."""
    rows = {}
    for name in ("transliterator", "stress_marker", "molecule_editor"):
        at = results.at(record=f"bench/{name}")
        row = {
            head: cell(at.at(mode), number, form=form)
            for head, (mode, number, form) in COLUMNS.items()
        }
        if record := results.record(at.record):
            by_hand = (run for run in record.runs if run.mode.endswith(" at most"))
            best = min(by_hand, key=lambda run: run.milliseconds).mode
            row["best by hand"] = cell(
                at.at(best), milliseconds, form=f"{{:.2f}} ({best[5:]})"
            )
        rows[name.replace("_", " ")] = row
    return [
        Own(
            "Models of others: tokens, passes and milliseconds of a sentence",
            "model",
            rows,
        )
    ]


OWN = {"models": models}
