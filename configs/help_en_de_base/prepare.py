"""Help pages with Tatoeba's sentences, for models of base size."""

from experiments.corpora import libreoffice_help
from experiments.experiment import Experiment, TestSet
from experiments.steps import Steps

EXPERIMENT = Experiment(
    sides=("en", "de"),
    languages={"en": "en", "de": "de"},
    test_sets=(TestSet("tatoeba"),),
    score=("sacrebleu", "bleu", "exact"),
)
SYMBOLS = 8000


def prepare(steps: Steps) -> None:
    libreoffice_help.prepare(steps, libreoffice_help.text_with_tatoeba, SYMBOLS)
