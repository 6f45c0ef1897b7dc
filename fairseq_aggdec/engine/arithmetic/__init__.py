"""Products with weights: how they are arranged, in which precision, and with which bits."""
