"""A text and what one undisturbed process makes of it."""

from pathlib import Path

import pytest

from tests.bulk.decoding import CORRECT, IN_SHARDS, SENTENCES, outputs, run


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 sentences and two empty lines: seven shards."""
    path = tmp_path_factory.mktemp("decode") / "text"
    lines = [*SENTENCES[:10], "", "  ", *SENTENCES[10:]]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


@pytest.fixture(scope="session")
def whole(text: Path) -> list[str]:
    """What one undisturbed process makes of it."""
    run(*CORRECT, *IN_SHARDS, "--input", text, "--output", text.with_name("whole"))
    return outputs(text.with_name("whole"))
