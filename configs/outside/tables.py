"""The table of models that others trained."""

from experiments.tables import Own, cell

MODELS = ("transliterator", "stress_marker", "molecule_editor")


def papers(results):
    """None: no paper decodes these models."""
    return []


def tokens(place):
    """Tokens of an output, its end counted."""
    return place.run and place.run.tokens / place.run.sentences


def passes(place):
    """Passes of the decoder for a sentence."""
    return place.run and place.run.mean_iterations


def milliseconds(place):
    """Of a sentence, alone."""
    return place.run and 1000 * place.run.seconds / place.run.sentences


def as_greedy(place):
    """Sentences with the output of `greedy`, which is compared with fairseq's."""
    return place.run and place.run.identical


def models(results):
    """Passes and times of each model."""
    rows = {}
    for name in MODELS:
        at = results.at(record=f"bench/{name}")
        record = results.record(f"bench/{name}")
        by_hand = [run for run in record.runs if run.mode.endswith(" at most")] if record else []
        best = at.at(min(by_hand, key=lambda run: run.seconds).mode if by_hand else "")
        rows[name.replace("_", " ")] = {
            "tokens": cell(at.at("greedy"), tokens, form="{:.1f}"),
            "passes, paper's rule": cell(at.at("iad, paper's rule"), passes, form="{:.1f}"),
            "passes, `iad`": cell(at.at("iad"), passes, form="{:.1f}"),
            "ms, fairseq's beam 1": cell(at.at("beam1"), milliseconds, form="{:.1f}"),
            "`greedy`": cell(at.at("greedy"), milliseconds, form="{:.2f}"),
            "`iad`, paper's rule": cell(at.at("iad, paper's rule"), milliseconds, form="{:.2f}"),
            "`iad`": cell(at.at("iad"), milliseconds, form="{:.2f}"),
            "best `--max-draft-len`": cell(best, milliseconds, form=f"{{:.2f}} ({best.label[5:]})"),
            "equal": cell(at.at("iad"), as_greedy, form="{}"),
        }
    return [Own("Models of others: tokens and passes a sentence, milliseconds a sentence", "model", rows)]


OWN = {"models": models}
