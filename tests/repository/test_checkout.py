"""Parts of a checkout that the installed package lacks."""

from pathlib import Path

import pytest

from fairseq_aggdec import checkout
from fairseq_aggdec.checkout import load_part
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.tasks.super_resolution import SuperResolution, SuperResolutionConfig


def test_without_its_checkout_a_part_is_asked_for_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_part("experiments.about").read_all(checkout.CONFIGS)
    monkeypatch.setattr(checkout, "CONFIGS", tmp_path)
    with pytest.raises(
        AggdecError,
        match="shared does not exist: it comes with a checkout; install the plugin by pip",
    ):
        SuperResolution.setup_task(SuperResolutionConfig())
