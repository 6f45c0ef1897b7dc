"""The drafters, a file each."""
