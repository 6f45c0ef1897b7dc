"""An experiment's results in one file, and the papers' tables with them beside the papers' numbers."""
