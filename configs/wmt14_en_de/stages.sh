# shellcheck shell=bash disable=SC2154,SC2034
high_quality="3 1.0" high_efficiency="5 3.0" # papers/000 Tables 7 and 14
source "$shared/translation.sh"
source "$shared/big_translation.sh"
target=de
source "$shared/baselines.sh"

# from random weights, as in fairseq's recipes
train_baseline() { run_full 8 1 "$1" --as "baselines/$1" --data "$distilled"; }
