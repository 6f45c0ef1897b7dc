# shellcheck shell=bash disable=SC2154,SC2034
origin=en target=ro
high_quality="5 4" high_efficiency="5 6" # papers/000 Table 14
drafter_frequency=2 # configs/shared/translation/drafter_wmt16.yaml
source "$shared/translation.sh"
