"""Decodes the same sentences in several modes and records times, outputs, counters and memory.

`rounds` times the modes in turns, `record` stores the measurements, `tables` and `figures` are computed from records.
"""
