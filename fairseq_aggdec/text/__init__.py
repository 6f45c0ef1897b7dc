"""Text in, text out: sentences found, decoded as one batch, and put back where they stood."""
