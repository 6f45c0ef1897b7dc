"""Data of WMT14 German-English."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import wmt

EXPERIMENT = Experiment(
    sides=("de", "en"),
    languages={"de": "de", "en": "en"},
    score=("bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt14)
