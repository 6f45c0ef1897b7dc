"""Data of abstractive summarization, CNN/Daily Mail in the usual split, neither lower-cased nor tokenised.

Running text -> GPT-2's subwords -> fairseq binary with BART's dictionary.
"""

import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path

from experiments.corpora import bart
from experiments.downloads import Original, fetch
from experiments.experiment import Experiment
from experiments.sentence_pairs import Pair
from experiments.steps import Steps
from experiments.text_files import one_space, read_lines

EXPERIMENT = Experiment(sides=("source", "target"), score=("rouge",), gpt2=True)
STORIES = [
    Original(
        "cnndm/originals/cnn_stories.tgz",
        ask="fetch it in a browser from https://cs.nyu.edu/~kcho/DMQA/ (CNN, stories)",
        sha256="e8fbc0027e54e0a916abd9c969eb35f708ed1467d7ef4e3b17a56739d65cb200",
    ),
    Original(
        "cnndm/originals/dailymail_stories.tgz",
        ask="fetch it in a browser from https://cs.nyu.edu/~kcho/DMQA/ (Daily Mail, stories)",
        sha256="ad69010002210b7c406718248ee66e65868b9f6820f163aa966369878d14147e",
    ),
]
SPLITS = {
    name: Original(
        f"cnndm/originals/all_{stem}.txt",
        f"https://raw.githubusercontent.com/abisee/cnn-dailymail/master/url_lists/all_{stem}.txt",
        sha256=checksum,
    )
    for name, stem, checksum in (
        (
            "train",
            "train",
            "a5cee49f3a6c862c26ce29308236d2a99625ab6c86a43be22d5206b2790d8029",
        ),
        (
            "valid",
            "val",
            "81887e982b045083409c6ee838aede8ff4b97291605bcfb21bffc456a16991db",
        ),
        (
            "test",
            "test",
            "c4f5efb5ec2126430a5c156efbd13d0e9c4cb490169e552c38b4a51981a009bd",
        ),
    )
}
"""{split: list of its stories' addresses}"""


def read_story(data: bytes) -> Pair:
    """A `.story` file: the article, and its highlights as a summary, each on one line."""
    body, *highlights = data.decode("utf-8").split("@highlight")
    sentences = [one_space(highlight) for highlight in highlights if highlight.strip()]
    ends = (".", "!", "?", '"', "'")
    return one_space(body), " ".join(
        text if text.endswith(ends) else f"{text} ." for text in sentences
    )


def stories(data: Path, addresses: Path) -> Iterator[Pair]:
    """Yields the stories of a list of addresses; a story's file name is the SHA-1 of its address."""
    wanted = {
        hashlib.sha1(line.strip().encode()).hexdigest()
        for line in read_lines(addresses)
        if line.strip()
    }
    for item in STORIES:
        with tarfile.open(data / item.path, "r|*") as archive:
            for member in archive:
                stream = (
                    archive.extractfile(member)
                    if Path(member.name).stem in wanted
                    else None
                )
                if stream is not None and all(story := read_story(stream.read())):
                    yield story


def text(steps: Steps, folder: Path) -> None:
    fetch(
        steps.data,
        [bart.model("bart.base"), *bart.SUBWORDS, *STORIES, *SPLITS.values()],
    )
    for name, addresses in SPLITS.items():
        steps.write_pairs(
            folder, name, stories(steps.data, steps.data / addresses.path)
        )


def prepare(steps: Steps) -> None:
    steps.once("text", text)
    steps.tokenise()
    # BART takes 1,024 with its end symbols
    steps.encode(steps.gpt2_subwords(), max_tokens=1022, max_source_tokens=1022)
    steps.binarise(steps.data / "bart/bart.base/dict.txt")
