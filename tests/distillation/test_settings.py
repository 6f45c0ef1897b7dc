"""What shards must agree in, as it is stored and as it is compared."""

from dataclasses import fields, replace
from typing import Any

from fairseq.dataclass.configs import GenerationConfig

from fairseq_aggdec.distillation.settings import SearchOptions, ShardSettings

SETTINGS = ShardSettings("train", {"source": "a" * 64, "target": "b" * 64}, ["c" * 64, "d" * 64], 64, 100)


def test_every_field_counts() -> None:
    """None can be changed without being noticed."""
    other: dict[str, Any] = {"split": "valid", "data": {"source": "e" * 64, "target": "b" * 64}, "teacher": ["c" * 64]}
    other |= {"longest_source": 65, "max_tokens": 99, "batch_size": 3, "precision": "fp16", "search": SearchOptions(4)}
    other |= {"decoding": "aggressive-beam"}
    assert other.keys() == {field.name for field in fields(ShardSettings)}
    for name, value in other.items():
        assert SETTINGS.difference(replace(SETTINGS, **{name: value}), "here", "there"), name
    changed = replace(SETTINGS, teacher=["e" * 64])
    assert changed.difference(SETTINGS, "now", "before") == f"teacher: {'e' * 12} now, {'c' * 12}:{'d' * 12} before"
    for field in fields(SearchOptions):
        changed = replace(SETTINGS, search=replace(SETTINGS.search, **{field.name: 17}))
        difference = changed.difference(SETTINGS, "now", "in the file")
        assert difference == f"{field.name}: 17 now, {field.default} in the file"


def test_defaults_are_fairseqs() -> None:
    stock = GenerationConfig()
    for field in fields(SearchOptions):
        assert getattr(stock, field.name) == field.default, field.name
