"""The recomputing verifier: any decoder of fairseq's, block by block, as its own full pass has it."""

from collections.abc import Iterator

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel
from torch import Tensor

from fairseq_aggdec.engine.recompute import RecomputeVerifier
from tests.random_models import dictionary, model_of_shape, random_batch
from tests.scripted_decoding import scored

VOCABULARY = dictionary(12)
PAD, EOS = VOCABULARY.pad(), VOCABULARY.eos()
TEXT = [EOS, 5, 9, 7, 8, 6, 10]
OTHER = [EOS, 11, 6, 6, 4, 9, 12]
SOURCES = random_batch(3, VOCABULARY, [4, 9])["net_input"]


@pytest.fixture(scope="module")
def model() -> FairseqEncoderDecoderModel:
    return model_of_shape("adaptive softmax", 3, VOCABULARY, VOCABULARY)


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture
def verifier(model: FairseqEncoderDecoderModel) -> RecomputeVerifier:
    started = RecomputeVerifier(model, PAD)
    started.start(model.encoder(**SOURCES))
    return started


def stock(model: FairseqEncoderDecoderModel, row: int, text: list[int]) -> Tensor:
    """The model's own log-probabilities after each token of one sentence, L x V."""
    encoded = model.encoder(SOURCES["src_tokens"][row : row + 1], SOURCES["src_lengths"][row : row + 1])
    return model.get_normalized_probs(model.decoder(torch.tensor([text]), encoder_out=encoded), log_probs=True)[0]


def test_blocks_continue_each_row_where_it_stands(
    model: FairseqEncoderDecoderModel, verifier: RecomputeVerifier
) -> None:
    scored(verifier, torch.tensor([TEXT[:4], OTHER[:4]]), torch.tensor([0, 0]))
    scores = scored(verifier, torch.tensor([TEXT[4:6], OTHER[2:4]]), torch.tensor([4, 2]))
    torch.testing.assert_close(scores[0], stock(model, 0, TEXT[:6])[4:], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scores[1], stock(model, 1, OTHER[:4])[2:], atol=1e-5, rtol=1e-5)


def test_a_rejected_draft_leaves_no_trace(model: FairseqEncoderDecoderModel, verifier: RecomputeVerifier) -> None:
    scored(verifier, torch.tensor([[EOS, 4, 4, 4, 4], OTHER[:5]]), torch.tensor([0, 0]))
    scores = scored(verifier, torch.tensor([TEXT[1:3], OTHER[1:3]]), torch.tensor([1, 1]))
    torch.testing.assert_close(scores[0], stock(model, 0, TEXT[:3])[1:], atol=1e-5, rtol=1e-5)


def test_a_new_batch_knows_nothing_of_the_last(model: FairseqEncoderDecoderModel, verifier: RecomputeVerifier) -> None:
    scored(verifier, torch.tensor([TEXT, OTHER]), torch.tensor([0, 0]))
    verifier.start(model.encoder(**SOURCES))
    scores = scored(verifier, torch.tensor([TEXT[:1], OTHER[:1]]), torch.tensor([0, 0]))
    torch.testing.assert_close(scores[1], stock(model, 1, OTHER[:1]), atol=1e-5, rtol=1e-5)


def test_kept_rows_keep_their_source_and_their_text(
    model: FairseqEncoderDecoderModel, verifier: RecomputeVerifier
) -> None:
    scored(verifier, torch.tensor([TEXT[:3], OTHER[:3]]), torch.tensor([0, 0]))
    verifier.keep(torch.tensor([1]))
    scores = scored(verifier, torch.tensor([OTHER[3:5]]), torch.tensor([3]))
    torch.testing.assert_close(scores[0], stock(model, 1, OTHER[:5])[3:], atol=1e-5, rtol=1e-5)


def test_the_temperature_is_applied() -> None:
    model = model_of_shape("lightweight convolutions", 3, VOCABULARY, VOCABULARY)
    verifier = RecomputeVerifier(model, PAD)
    verifier.start(model.encoder(**SOURCES), temperature=0.5)
    scores = scored(verifier, torch.tensor([TEXT, OTHER]), torch.tensor([0, 0]))
    sharper = (2 * stock(model, 0, TEXT)).log_softmax(dim=-1)
    torch.testing.assert_close(scores[0], sharper, atol=1e-5, rtol=1e-5)
