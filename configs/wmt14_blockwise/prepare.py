"""Data of WMT14 English-German."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import wmt

EXPERIMENT = Experiment(
    sides=("en", "de"),
    languages={"en": "en", "de": "de"},
    score=("compound-bleu", "bleu", "sacrebleu", "repetition"),
)
prepare = wmt.preparation(wmt.wmt14)
