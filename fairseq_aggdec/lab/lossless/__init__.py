"""Whether outputs that must be the same are the same."""
