"""Decoding modes side by side on the same sentences: times, outputs, counters, memory; tables and figures of them.

`rounds` runs the modes in turns, `record` keeps what was measured, `tables` and `figures` are arithmetic on records.
"""
