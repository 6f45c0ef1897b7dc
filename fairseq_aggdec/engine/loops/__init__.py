"""Loops over a batch that stay on the device; off unless AGGDEC_GPU=loops, since no GPU has run them in this package.

Only the generator imports this folder, and asks `ask.device_loop` alone.
"""
