"""The papers' drafters and ours, a file each."""
