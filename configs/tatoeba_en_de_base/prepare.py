"""Data of the base-size English-German translation experiment, those of configs/tatoeba_en_de."""

from experiments.corpora import tatoeba
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("en", "de"),
    languages={"en": "en", "de": "de"},
    score=("sacrebleu", "bleu", "exact"),
)
prepare = tatoeba.prepare
