"""The drafters, each in a file of its own."""
