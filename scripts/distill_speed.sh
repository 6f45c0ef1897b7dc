#!/usr/bin/env bash
# Times `aggdec distill --beam 5` with fairseq's own search and with this plugin's, one after the other in every round, and ends with
# exit code 1 where the folders that they write differ in a byte. usage:
#   bash scripts/distill_speed.sh RECORD.tsv DATA-BIN TEACHER.pt SPLIT [BATCH-SIZE...]     default: 1 8 32
#   ROUNDS=3 says how often. A line of the record is: batch size, round, search, seconds of the whole command.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

record=$1 data=$2 teacher=$3 split=$4
sizes=("${@:5}")
((${#sizes[@]})) || sizes=(1 8 32)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

distil() { # SEARCH BATCH-SIZE
    rm -rf "$folder/$1" "$folder/$1.shards"
    aggdec distill "$data" "$folder/$1" --teacher "$teacher" --beam 5 --subset "$split" --batch-size "$2" --decoding "$1" \
        2>"$folder/$1.log" || { cat "$folder/$1.log" >&2; return 1; }
}

git -C "$root" describe --always --dirty --abbrev=12 --exclude='*' | sed 's/^/# commit /' >"$record"
for size in "${sizes[@]}"; do
    for ((round = 1; round <= ${ROUNDS:-3}; round++)); do
        for search in beam aggressive-beam; do
            began=$EPOCHREALTIME
            distil "$search" "$size"
            seconds=$(awk -v now="$EPOCHREALTIME" -v began="$began" 'BEGIN { printf "%.1f", now - began }')
            printf '%s\t%s\t%s\t%s\n' "$size" "$round" "$search" "$seconds" | tee -a "$record"
        done
        diff -rq --exclude=distillation.json "$folder/beam" "$folder/aggressive-beam"
    done
done
