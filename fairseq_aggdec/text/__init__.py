"""Text in, text out: spacing, tokens, sentences and edits. `pipeline` joins them."""
