"""How much to draft: in no paper."""
