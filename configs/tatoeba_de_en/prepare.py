"""Data of the small German-English translation experiment."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import tatoeba

EXPERIMENT = Experiment(sides=("de", "en"), languages={"en": "en", "de": "de"}, score=("sacrebleu", "bleu", "exact"))
prepare = tatoeba.prepare
