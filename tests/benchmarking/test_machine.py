"""Tests of `fairseq_aggdec.benchmarking.machine`."""

import subprocess

import pytest
import torch

from fairseq_aggdec.benchmarking import machine


def test_facts_and_their_description() -> None:
    facts = machine.machine()
    assert facts["threads"] == torch.get_num_threads()
    line = machine.describe(facts)
    assert facts["processor"] in line
    assert f"torch {torch.__version__}" in line
    assert machine.describe({**facts, "gpu": "G", "cuda": "12"}).startswith("G (CUDA 12), ")


def test_a_commit_is_known_only_in_git(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(subprocess, "run", fail)
    assert machine.commit() is None


def test_now_is_in_universal_time() -> None:
    assert machine.now().endswith("+00:00")
