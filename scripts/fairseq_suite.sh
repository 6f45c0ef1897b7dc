#!/usr/bin/env bash
# fairseq's own tests with this plugin in place: its sequence generator, and its commands with our modes beside its search.
# usage: bash scripts/fairseq_suite.sh FOLDER [--only WORD] [--seed N]      FOLDER: a checkout of fairseq
source "$(dirname -- "${BASH_SOURCE[0]}")/environment.sh"
exec python "$root/scripts/fairseq_suite.py" "$@"
