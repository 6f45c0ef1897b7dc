"""Data of the small German-English translation experiment."""

from experiments.corpora import tatoeba
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("de", "en"),
    languages={"en": "en", "de": "de"},
    score=("sacrebleu", "bleu", "exact"),
)
prepare = tatoeba.prepare
