"""Which folders data preparation needs."""

import ast
from pathlib import Path

import fairseq_aggdec.data


def test_data_needs_none_of_the_folders_that_need_it() -> None:
    needed = set()
    for path in Path(fairseq_aggdec.data.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fairseq_aggdec."):
                needed.add(node.module.split(".")[1])
    assert needed == {"data", "errors", "files", "structured_files", "writing"}
