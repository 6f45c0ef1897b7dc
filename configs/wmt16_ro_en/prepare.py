"""Data of WMT16 Romanian-English."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import wmt

EXPERIMENT = Experiment(
    sides=("ro", "en"),
    languages={"ro": "ro", "en": "en"},
    score=("bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt16)
