# The stages of the small Ukrainian correction experiment, for scripts/reproduce.sh.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/rewriting.sh"
