"""A model that nobody here trained, CTranslate2's transliterator of Arabic names: outputs are those of CTranslate2.

The experiment `outside` makes its checkpoint and its words, and refuses them where fairseq's best outputs are not those
of CTranslate2 itself.
"""

import io
import pickle
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from experiments.experiment import load_module
from experiments.steps import Steps

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.errors import AggdecError
from tests.configs.composing import CONFIGS
from tests.support.helpers import PLUGIN, generate_here, parse_generate


@cache
def experiment() -> ModuleType:
    """The experiment's prepare.py."""
    return load_module(CONFIGS / "outside/prepare.py")


def test_fairseq_generate_prints_ctranslate2s_names(
    aggdec_data: Path, tmp_path: Path
) -> None:
    steps = Steps(experiment().EXPERIMENT, aggdec_data, tmp_path)
    experiment().transliterator(steps, tmp_path)
    data = DataBin.find(tmp_path)
    model = ["--path", tmp_path / "checkpoint.pt", "--user-dir", PLUGIN, "--cpu"]
    search = (
        "--max-len-b 59 --task aggressive_translation --decoding iad --batch-size 16"
    )
    printed = parse_generate(generate_here(tmp_path, *model, *search.split()))
    for number, text in enumerate(data.target("test")):
        names = [data.target_dictionary[token] for token in text.tolist()[:-1]]
        assert printed[number].tokens == names
    assert len(printed) == 100


def test_what_cannot_be_installed_or_is_no_plain_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        AggdecError,
        match=f"pip install --no-deps --target {tmp_path}/packages ruaccent-predictor==",
    ):
        experiment().install(
            Steps(experiment().EXPERIMENT, tmp_path, tmp_path), tmp_path / "new"
        )
    with pytest.raises(pickle.UnpicklingError, match="only plain data"):
        experiment().PlainUnpickler(io.BytesIO(pickle.dumps(Path))).load()
