from pathlib import Path

import pytest

from fairseq_aggdec.cli import prepare
from fairseq_aggdec.errors import AggdecError

CONFIG = Path(__file__).resolve().parents[2] / "configs/gec_small/prepare.yaml"


def test_missing_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(AggdecError, match="AGGDEC_DATA") as caught:
        prepare.main([str(CONFIG), "--data", str(tmp_path), "--work", str(tmp_path / "work")])
    assert str(tmp_path / "tatoeba-en-de/deu.txt.gz") in str(caught.value)
