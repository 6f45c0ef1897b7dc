"""How a stock fairseq decoder scores a block of tokens against a cache of what it has read.

What is written in place, all of it, and why that is safe (tests/engine/test_in_place.py holds this list against the
code, and every public call against what its caller still uses):

    file                  written                                   which is
    bit_exact_probe.py    self._source[...]                         the probe's own random source
    block_encoder.py      (~hidden).cumsum(...)                     a new tensor
                          self._out(...) and self._fc2(...)         a product's result
    engines.py            model                                     whether it asks for gradients, and no number
    layers.py             torch.full(...)                           the causal mask, as it is made
                          scores.view(...)                          a product's result
                          self.own                                  the cache, from the positions of the block on
                          wider[...]                                a new, larger cache
                          x                                         of `keep_rows`, whose caller gives it away
                          self._self_out(...)                       a product's result
                          self._cross_out(...)                      a product's result
                          self._fc2(...)                            a product's result
    linear.py             padded[...]                               a new tensor
    modules.py            weight * ...                              a new tensor
    precision.py          weight * ...                              a new tensor
                          torch.div(self._levels, peaks).mul(...)   a new tensor
                          y                                         a product's result
    recompute.py          read and read[...]                        a new tensor
    transition_tables.py  F.embedding(...)                          a new tensor

native/kernels.c and native/beams.c write to tensors that were made for their results, to memory of their own, and to
the cache, where the block's tokens stand.
"""
