"""Matrix products with weights: prepacking, precision, and reproducible bits."""
