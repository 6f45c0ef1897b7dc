# shellcheck shell=bash disable=SC2154,SC2034
origin=en target=de
high_quality="3 1" high_efficiency="5 3" # papers/000 Tables 7 and 14
source "$shared/translation.sh"
source "$shared/big_translation.sh"
tune_options=(--metric compound-bleu)
