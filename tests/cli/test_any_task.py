"""A task that no one here knows; test_families.py has fairseq's."""

import re
from pathlib import Path

from tests.cli.correction import PLUGIN, assert_same_hypotheses
from tests.support.helpers import ToyModel, parse_generate, run_cli

OWN = """
from dataclasses import dataclass, field
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

@dataclass
class MyConfig(TranslationConfig):
    never: str = field(default="", metadata={"help": "a word that no output has"})

@register_task("my_task", dataclass=MyConfig)
class MyTask(TranslationTask):
    def build_generator(self, models, args, extra_gen_cls_kwargs=None, **unused):
        extra = {**(extra_gen_cls_kwargs or {}), "tokens_to_suppress": (self.cfg.never,)}
        return super().build_generator(models, args, extra_gen_cls_kwargs=extra)
"""


def test_a_task_that_no_one_here_knows(
    correction_model: ToyModel, tmp_path: Path
) -> None:
    """By the lines of docs/options.md, in processes that know only the other user directory."""
    page = (PLUGIN.parent / "docs/options.md").read_text("utf-8")
    [lines] = [
        code
        for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        if "MyTask" in code
    ]
    user = tmp_path / "of_mine"
    user.mkdir()
    (user / "my_task.py").write_text(OWN)
    (user / "__init__.py").write_text(lines)
    files = f"{correction_model.data} --path {correction_model.checkpoint} --user-dir {user}"
    ours = "--task aggressive_my_task --decoding iad --print-step --batch-size 1"
    stock, found = (
        run_cli(
            "fairseq-generate",
            *f"{files} --never ba --cpu {task}".split(),
            own_process=True,
        ).stdout
        for task in ("--task my_task --beam 1", ours)
    )
    assert_same_hypotheses(found, stock)
    sentences = parse_generate(found).values()
    assert not any("ba" in sentence.tokens for sentence in sentences)
    assert any("ba" in sentence.source.split() for sentence in sentences)
    assert sum(sentence.steps or 0 for sentence in sentences) < 0.8 * sum(
        len(one.positional) for one in sentences
    )
