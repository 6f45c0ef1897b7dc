"""Text in, text out: spacing, tokens, sentences and edits. `fairseq_aggdec.model` decodes them as one batch."""
