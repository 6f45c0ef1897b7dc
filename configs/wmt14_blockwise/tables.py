"""The tables that wmt14_blockwise reproduces."""

from experiments.common_tables import BLOCKS, blockwise_table, heads
from experiments.measures import Score, accepted_block, speed_up
from experiments.tables import beside

OWN = {"blockwise_table": blockwise_table}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    greedy = "Transformer with distillation (greedy, k = 1)"
    columns = {"BLEU": Score("compound BLEU"), "Speedup": speed_up}
    at = results.at(over="greedy", over_record="bench/distilled-1")
    rows = {
        greedy: at.at("distilled-1", mode="greedy", record="bench/distilled-1").row(
            columns
        )
    }
    for k in BLOCKS:
        place = at.at(f"both-{k}", mode="blockwise", record=f"bench/both-{k}")
        rows[f"Blockwise parallel decoding (k = {k})"] = place.row(columns)
    both = {"Both BLEU": Score("sacrebleu"), "Both Tok.": accepted_block}
    least = {
        f"k = 8, least block {n}": results.at(f"both-8-min{n}", set="valid").row(both)
        for n in (2, 3)
    }
    first = heads(
        results, one_head=True, rows=least, further=dict.fromkeys(least, "k = 8")
    )
    return [first, beside("stern2018/4", rows, greedy=greedy)]
