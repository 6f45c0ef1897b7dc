# The small experiment the other way round: the models and stages of configs/tatoeba_en_de, German to English.
# shellcheck shell=bash disable=SC2034,SC2154
target=en
train_options=(
    --of tatoeba_en_de task.source_lang=de task.target_lang=en tokenizer.source_lang=de tokenizer.target_lang=en
)
source "$root/configs/tatoeba_en_de/stages.sh"
