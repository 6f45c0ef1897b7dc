"""fairseq's beam search, exactly, in fewer passes of the model: docs/aggressive-beam.md.

    search -> plan -> score        until every sentence's search has ended

A search step needs the row after every live hypothesis: the scores of the next token. A row depends on its prefix
alone, so rows may be scored in any order and long before they are needed. The search advances over the rows that are
known; where one is missing, a plan adds prefixes that will probably be needed soon, and one pass scores them all.
"""
