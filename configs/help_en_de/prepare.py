"""Data of the small experiment on long sentences."""

from experiments.corpora import libreoffice_help
from experiments.experiment import Experiment

EXPERIMENT = Experiment(
    sides=("en", "de"),
    languages={"en": "en", "de": "de"},
    score=("sacrebleu", "bleu", "exact"),
)
prepare = libreoffice_help.prepare
