"""Tests of `fairseq_aggdec.lab.benchmarking.machine`."""

import subprocess

import pytest

from fairseq_aggdec.lab.benchmarking import machine


def test_a_commit_is_known_in_git_or_where_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(subprocess, "run", fail)
    monkeypatch.delenv("AGGDEC_COMMIT", raising=False)
    assert machine.commit() is None
    monkeypatch.setenv("AGGDEC_COMMIT", "45b3b06")  # of a copy that is no checkout
    assert machine.commit() == "45b3b06"
