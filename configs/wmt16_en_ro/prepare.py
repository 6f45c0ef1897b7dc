"""Data of WMT16 English-Romanian."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import wmt

EXPERIMENT = Experiment(
    sides=("en", "ro"),
    languages={"en": "en", "ro": "ro"},
    score=("bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt16)
