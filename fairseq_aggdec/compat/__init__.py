"""Corrections of fairseq for today's Python, PyTorch and files; `install` applies them.

checkpoints    reading without running code: allowed_classes, stored_options
command_line   bfloat16 without a TPU, limits of batches, an option without its task
batches        no sentence is lost
training       resuming on several workers, averaged weights, BART from YAML, swish
nat            fairseq's non-autoregressive models

Settings that fairseq keeps in models, for generators that share one: plain_attention, model_locks.
"""
