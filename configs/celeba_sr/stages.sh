# Super-resolution of CelebA by blockwise parallel decoding (papers/004 §7.2, Tables 2 and 4): the stages of
# configs/sign_digits_sr in colour, with the larger models of this folder.
# shellcheck shell=bash disable=SC2154,SC2034
SR_SETTING=rgb default_limit=1000 # all images that are held out for testing
SR_HEADS_UPDATES="${SR_HEADS_UPDATES:-250000}" SR_OPTIONS="${SR_OPTIONS:---device cuda --repeats 2}"
source "$shared/full_size.sh"
source "$root/configs/sign_digits_sr/stages.sh"
stages=(prepare "${stages[@]}")
images="$data/celeba/img_align_celeba"

stage_prepare() { prepare; }

paper_batch() { same_batch 8 1; }
