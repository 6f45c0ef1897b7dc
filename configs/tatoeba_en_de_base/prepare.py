"""Data of the base-size English-German translation experiment, those of configs/tatoeba_en_de."""

from fairseq_aggdec.data.experiment import Experiment

from ..shared.data import tatoeba

EXPERIMENT = Experiment(sides=("en", "de"), languages={"en": "en", "de": "de"}, score=("sacrebleu", "bleu", "exact"))
prepare = tatoeba.prepare
