"""Data of the small English-German translation experiment."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import tatoeba

EXPERIMENT = Experiment(sides=("en", "de"), languages={"en": "en", "de": "de"}, score=("sacrebleu", "bleu", "exact"))
prepare = tatoeba.prepare
