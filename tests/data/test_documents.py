import json
from typing import Any

import pytest

from fairseq_aggdec.data.documents import Document, denoising_pairs, read_documents
from fairseq_aggdec.errors import AggdecError


def lines(*records: Any) -> list[str]:
    return [record if isinstance(record, str) else json.dumps(record) for record in records]


def test_documents_are_read() -> None:
    first = {"source": ["One  sentence .", "", "“Two”."], "target": ["A summary.", " ", "Another."], "best": [0, 0, 1]}
    second = {"source": "The whole.", "target": "Short.", "best": [0.5]}
    empty = {"source": [""], "target": ["Of nothing."], "best": [1]}
    silent = {"source": ["Text."], "target": [""], "best": [1]}
    found = list(read_documents(lines(first, second, empty, silent), "file", "source", "target", "best"))
    assert found == [
        Document(["One sentence .", '"Two".'], ["A summary.", "Another."], '"Two".'),
        Document(["The whole."], ["Short."], "The whole."),
    ]
    assert found[0].text == 'One sentence . "Two".'
    [document] = read_documents(lines(second), "file", "source", "target")
    assert document.extract is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ({"source": "a"}, "has no field target, best; it has source"),
        ({"source": ["a", "b"], "target": "b", "best": [1]}, "best must have one number for each of the 2"),
        ({"source": ["a", "b"], "target": "b", "best": [1, "high"]}, "best must have one number for each of the 2"),
    ],
)
def test_what_is_no_document(line: Any, message: str) -> None:
    good = {"source": "a", "target": "b", "best": [1]}
    with pytest.raises(AggdecError, match=f"file, line 2: {message}"):
        list(read_documents(lines(good, line), "file", "source", "target", "best"))


def test_pairs_to_restore() -> None:
    sentences = ["a b c", "d e", "much too long a sentence to be one"]
    documents = [Document(sentences, ["x"]), Document(["g"], ["y"])]
    pairs = list(denoising_pairs(documents, max_words=6, deletions=0.3))
    assert pairs == list(denoising_pairs(documents, max_words=6, deletions=0.3))
    targets = [target for _, target in pairs]
    assert targets[:2] == ["a b c", "d e"]
    assert targets[-1] == "g"
    assert all(len(target.split()) <= 6 for target in targets)
    text = " ".join(sentences)
    assert all(target in text for target in targets if target != "g")
    for source, target in pairs:
        rest = iter(target.split())
        assert source
        assert all(word in rest for word in source.split())  # in the same order
