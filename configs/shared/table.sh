# The stage `table`: writes the papers' tables with our numbers beside the papers' to work/EXPERIMENT/table.md, by tables.yaml.
# shellcheck shell=bash disable=SC2154
stage_table() { table_beside_papers; }

# Prints a table of experiments/experiment_tables.py: own_table NAME [options of aggdec report experiment].
own_table() {
    local name="$1"
    shift
    python -m fairseq_aggdec.cli.verbs report experiment "$config" --work "$work" --data "$data" --table "$name" "$@"
}

table_beside_papers() {
    python -m fairseq_aggdec.cli.verbs report experiment "$config" --work "$work" --data "$data" \
        --output "$work/table.md"
}
