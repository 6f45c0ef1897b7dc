"""The tables that wmt14_blockwise reproduces."""

from experiments.common_tables import BLOCKS, blockwise_table, heads
from experiments.measures import Score, speed_up
from experiments.tables import beside

OWN = {"blockwise_table": blockwise_table}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    greedy = "Transformer with distillation (greedy, k = 1)"
    columns = {"BLEU": Score("compound BLEU"), "Speedup": speed_up}
    at = results.at(over="greedy", over_record="bench/base-distilled")
    rows = {greedy: at.at("base-distilled", mode="greedy", record="bench/base-distilled").row(columns)}
    for k in BLOCKS:
        place = at.at(f"both-{k}", mode="blockwise", record=f"bench/both-{k}")
        rows[f"Blockwise parallel decoding (k = {k})"] = place.row(columns)
    return [heads(results, one_head=True), beside("stern2018/4", rows, greedy=greedy)]
