# The stage `table`: writes all scores, counters and times of an experiment to work/EXPERIMENT/results.json, and the papers'
# tables with our numbers beside the papers' to work/EXPERIMENT/table.md, by the experiment's tables.yaml.
# shellcheck shell=bash disable=SC2154
stage_table() { table_beside_papers; }

# Prints a table of `own` in the experiment's tables.yaml: own_table NAME [options of aggdec report experiment].
own_table() {
    local name="$1"
    shift
    python -m fairseq_aggdec.cli.report experiment "$config" --work "$work" --data "$data" --table "$name" "$@"
}

# table_beside_papers [options of aggdec report experiment]
table_beside_papers() {
    python -m fairseq_aggdec.cli.report experiment "$config" --work "$work" --data "$data" --json "$work/results.json" \
        --output "$work/table.md" "$@"
}
