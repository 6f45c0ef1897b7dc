"""fairseq's beam search, exactly, in fewer passes of the model: docs/aggressive-beam.md.

    search -> plan -> score        until every sentence's search has ended

A search step needs the row behind every live hypothesis: what may follow it, scored. Rows are functions of the prefix
alone, so they may be scored in any order and long before they are needed. The search goes on over the rows that are
there; where one is missing, a planner adds prefixes that will probably be needed soon, and one pass scores them all.
"""
