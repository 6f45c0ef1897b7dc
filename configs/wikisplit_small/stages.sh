# The stages of the small text simplification experiment (papers/000 Table 4 in small), for scripts/reproduce.sh.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/rewriting.sh"
rewriting_subsets=(test test1) # WikiSplit, ASSET

# From the shipped corrector: 16,000 pairs are too few to learn to copy English from.
stage_train() { run_model train "checkpoint.finetune_from_model=$plugin/demo/gec/model.pt"; }
