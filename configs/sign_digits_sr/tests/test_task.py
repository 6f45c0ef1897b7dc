"""Images through the task in one process; fairseq's commands are in tests/cli."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import LanguagePairDataset
from super_resolution.task import SuperResolutionConfig, SuperResolutionTask
from super_resolution.tokens import to_image

from fairseq_aggdec.errors import AggdecError
from tests.support.random_models import random_blockwise
from tests.support.synthetic_images import make_images, write_npz

SIZES: dict[str, Any] = {"input_size": 2, "output_size": 6, "grey": True}
TOKENS = 36


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_npz(tmp_path / "images.npz", make_images(40))


def task(data: object, decoding: str = "beam", **options: Any) -> SuperResolutionTask:
    config = SuperResolutionConfig(
        **{
            "data": str(data),
            "decoding": decoding,
            "valid_images": 3,
            "test_images": 5,
            **SIZES,
            **options,
        }
    )
    return SuperResolutionTask.setup_task(config)


def model_for(made: SuperResolutionTask) -> Any:
    dictionary = made.source_dictionary
    model = random_blockwise("pre-norm sinusoidal", "identity", 1, dictionary, heads=4)
    model.decoder.max_target_positions = TOKENS + 1
    return model


def decoded(
    made: SuperResolutionTask, model: Any, batch: dict[str, Any], **options: Any
) -> list[list[int]]:
    generator = made.build_generator([model], Namespace(beam=1, **options))
    return [
        best["tokens"].tolist()
        for best, *_ in made.inference_step(generator, [model], batch)
    ]


def test_splits(data: Path) -> None:
    made = task(data)
    seen = set()
    for split, count in (("train", 32), ("valid", 3), ("test", 5)):
        made.load_dataset(split)
        dataset = made.dataset(split)
        assert isinstance(dataset, LanguagePairDataset)
        assert len(dataset) == count
        assert dataset.shuffle == (split == "train")
        seen |= {image.tobytes() for image in dataset.tgt.images}
        batch = dataset.collater([dataset[0], dataset[1]])
        assert batch["net_input"]["src_tokens"].shape == (2, 5)
        assert batch["target"].shape == (2, TOKENS + 1)
        assert (
            batch["net_input"]["prev_output_tokens"][:, 0]
            .eq(made.target_dictionary.eos())
            .all()
        )
        image = dataset.tgt.images[0]
        areas = image.reshape(2, 3, 2, 3).mean(axis=(1, 3)).ravel()
        assert abs(dataset.src.images[0].ravel() - areas).max() <= 0.5
        assert (
            to_image(batch["target"][0], 6, 1, made.target_dictionary) == image
        ).all()
    assert len(seen) > 30
    assert made.max_positions() == (5, TOKENS + 1)


def test_approximate_decoding_stays_within_the_distance(data: Path) -> None:
    """Each token is the model's own choice after the tokens before it, or differs from that by at most epsilon."""
    made = task(data, "blockwise", accept_distance=20)
    model = model_for(made)
    made.load_dataset("test")
    dataset = made.dataset("test")
    batch = dataset.collater([dataset[number] for number in range(5)])
    outputs = torch.tensor(decoded(made, model, batch))
    inputs = torch.cat([outputs[:, -1:], outputs[:, :-1]], dim=1)
    source = batch["net_input"]
    first = made.target_dictionary.index("0")
    with torch.no_grad():
        logits = model(source["src_tokens"], source["src_lengths"], inputs)[0]
    choices = logits[:, :-1, first:].argmax(dim=-1) + first
    differences = (choices - outputs[:, :-1]).abs()
    assert differences.max() <= 20
    assert differences.max() > 0, "nothing was approximate: this says little"


def test_refused_options_and_data(data: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"data": ""}, "no data given"),
        ({"input_size": 4}, "--output-size 6 is no multiple of --input-size 4"),
        (
            {"source_lang": "en"},
            "--source-lang has no meaning for --task super_resolution",
        ),
        (
            {"decoding": "greedy", "accept_distance": 2.0},
            "--accept-distance is read by",
        ),
    ]
    for options, message in cases:
        with pytest.raises(AggdecError, match=message):
            task(**{"data": data, **options})
    made = task(data, "greedy")
    with pytest.raises(AggdecError, match="--max-len-b 30: the image size determines"):
        made.build_generator([model_for(made)], Namespace(max_len_b=30))
    with pytest.raises(AggdecError, match="dev: no such split of images"):
        made.load_dataset("dev")
    with pytest.raises(AggdecError, match="too few to hold out 38 and 5"):
        task(data, valid_images=38).load_dataset("test")


def test_lines_of_interactive_input(data: Path) -> None:
    """Their numbers count from the first line of all, whichever buffer they are in."""
    made = task(data)
    [tokens], lengths = made.get_interactive_tokens_and_lengths(
        ["0 17 4 255"], lambda line: line
    )
    assert made.source_dictionary.string(tokens) == "0 17 4 255"
    assert list(lengths) == [5]
    for line, message in (
        ("0 1 2", "line 3: 3 words, where 4"),
        ("0 1 2 256", "line 3: '256', where 4"),
    ):
        with pytest.raises(AggdecError, match=message):
            made.get_interactive_tokens_and_lengths(
                ["1 2 3 4", line], lambda line: line
            )
