"""Products with weights: how they are prepacked, in which precision, and with which bits."""
