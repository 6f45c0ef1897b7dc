import json
from typing import Any

import pytest

from configs.scitldr.documents import Document, denoising_pairs, read_documents
from fairseq_aggdec.errors import AggdecError


def lines(*records: Any) -> list[str]:
    return [record if isinstance(record, str) else json.dumps(record) for record in records]


def record(source: Any, target: Any, labels: list[Any]) -> dict[str, Any]:
    return {"source": source, "target": target, "source_labels": labels}


def test_documents_are_read() -> None:
    first = record(["One  sentence .", "", "“Two”."], ["A summary.", " ", "Another."], [0, 0, 1])
    second = record("The whole.", "Short.", [0.5])
    empty, silent = record([""], ["Of nothing."], [1]), record(["Text."], [""], [1])
    found = list(read_documents(lines(first, second, empty, silent), "file"))
    assert found == [
        Document(["One sentence .", '"Two".'], ["A summary.", "Another."], '"Two".'),
        Document(["The whole."], ["Short."], "The whole."),
    ]
    assert found[0].text == 'One sentence . "Two".'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ({"source": "a"}, "a JSON object is expected, with source and target and source_labels"),
        (record(["a", 7], "b", [1, 2]), "a string or a list of strings is expected"),
        (record(["a", "b"], "b", [1, "high"]), "source_labels must have one number for each of the 2"),
    ],
)
def test_what_is_no_document(line: Any, message: str) -> None:
    with pytest.raises(AggdecError, match=f"file, line 2: {message}"):
        list(read_documents(lines(record("a", "b", [1]), line), "file"))


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
