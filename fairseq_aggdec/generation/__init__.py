"""The generators that fairseq calls: a sample goes in, hypotheses come out."""
