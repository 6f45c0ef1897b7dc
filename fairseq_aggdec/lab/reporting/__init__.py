"""Gathers an experiment's results, and prints them beside the numbers of the papers' tables."""
