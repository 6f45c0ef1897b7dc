# The stages `baselines_train` and `baselines` of the small experiment: short trainings on the drafter's training pairs, which
# are the verifier's own output, that start from the verifier's weights (iNAT from those of NAT).
# shellcheck shell=bash disable=SC2154,SC2034
source "$shared/baselines.sh"
baseline_updates="${BASELINE_UPDATES:-4000}" # for models with one decoder pass in an update; others get as many passes

train_baseline() {
    local place="$work/baselines/$1" updates=$((baseline_updates / $3)) start="$work/baselines/nat/model.pt"
    if [[ "$1" != inat && ! -f "$place/model.pt" ]]; then
        start="$place/start.pt"
        python -m fairseq_aggdec.cli.verbs nat-start "$model" "$2" --output "$start"
    fi
    also_shortened=BASELINE_UPDATES run_variant "$1" "$redistilled" "$place" "$updates" $(((updates + 1) / 2)) "checkpoint.finetune_from_model=$start"
    rm -f "$place/start.pt"
}
