# The stages of the small Chinese correction experiment, for scripts/reproduce.sh.
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/rewriting.sh"
decoding_options=(--max-len-a 1.2 --max-len-b 10) # sentences have up to 239 characters, fairseq stops at 200 by default
