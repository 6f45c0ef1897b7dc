"""How a stock fairseq decoder scores a block of tokens against a cache of what it has read."""
