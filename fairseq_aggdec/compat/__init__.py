"""What fairseq lacks for today's Python, PyTorch and files, a module for each part; `install` puts it in its place.

checkpoints    read without running code in them: allowed_classes, stored_options
command_line   bfloat16 without a TPU, limits of batches, an option without its task
batches        none is lost
training       resuming on several workers, averaged weights, BART from YAML
openmp         PyTorch's threads on a busy machine
nat            fairseq's non-autoregressive models
"""
