# shellcheck shell=bash disable=SC2154,SC2034
origin=ro target=en
high_quality="3 2" high_efficiency="5 3" # papers/000 Table 14
drafter_frequency=2 # configs/shared/translation/drafter_wmt16.yaml
source "$shared/translation.sh"
