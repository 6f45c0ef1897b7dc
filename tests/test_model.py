"""`load` and `Model.decode`: text in, text out."""

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from fairseq_aggdec import load
from fairseq_aggdec.demo.shipped import CAREFUL, SHIPPED
from fairseq_aggdec.engine import drafter
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.model import Model
from fairseq_aggdec.text.edits import apply_edits

LETTER = (
    "Dear Anna,\r\n\r\nI has lost my bag on 12/03/2021 at 17:30, near the café.  It were blue and/or green ;) "
    "My number is +49 (0)30 123, see https://example.org/a?b=1&c=2 \n\n- we was happy\n\n\tShe have two brother."
)
CORRECTED = (
    "Dear Anna,\r\n\r\nI have lost my bag on 12/03/2021 at 17:30, near the café.  It was blue and/or green ;) "
    "My number is +49 (0)30 123, see https://example.org/a?b=1&c=2 \n\n- we were happy\n\n\tShe has two brothers."
)
MT = SHIPPED["mt"].folder
MOSES: dict[str, Any] = {
    "tokenizer": "moses",
    "moses_no_escape": True,
    "moses_no_dash_splits": True,
}


@cache
def shipped(name: str) -> Model:
    return load.shipped(name)


@pytest.mark.parametrize("mode", ["greedy", "iad", "aggressive"])
def test_a_text_keeps_its_lines_and_spacing_and_its_edits_make_the_correction(
    mode: str,
) -> None:
    result = shipped("gec").decode(LETTER, mode)
    assert result.text == CORRECTED
    assert apply_edits(result.source, result.edits) == result.text
    assert [
        result.source[edit.offset :][: edit.length] for edit in result.edits
    ] == "has were was have brother".split()
    for sentence in result.sentences:
        assert result.source[sentence.start : sentence.end] == sentence.source
        assert sentence.note is None


def test_results_are_in_the_order_of_the_texts_however_they_are_batched() -> None:
    texts = ["We was happy. " * 3, "", "She have a dog.", " \n ", "We was happy."]
    alone = [shipped("gec").decode(text, "iad").text for text in texts]
    assert [result.text for result in shipped("gec").decode(texts, "iad")] == alone
    assert [
        result.text for result in shipped("gec").decode(texts, "iad", batch_size=1)
    ] == alone
    assert alone == [
        "We were happy. " * 3,
        "",
        "She has a dog.",
        " \n ",
        "We were happy.",
    ]


def test_several_threads_and_models_at_once() -> None:
    texts = ["She have two brother.", "He go home.", "I has a dog."]
    with ThreadPoolExecutor(4) as pool:
        corrected = [pool.submit(shipped("gec").decode, text) for text in texts * 4]
        translated = [
            pool.submit(shipped("mt").decode, "Where do you live?") for _ in range(4)
        ]
    assert {done.result().text for done in translated} == {
        shipped("mt").decode("Where do you live?").text
    }
    alone = [result.text for result in shipped("gec").decode(texts)]
    assert [done.result().text for done in corrected] == alone * 4


def test_counters_tell_what_was_drafted() -> None:
    (sentence,) = (
        shipped("gec").decode("He live in Berlin with his two sister.", "iad").sentences
    )
    assert sentence.text == "He lives in Berlin with his two sisters."
    assert (
        0
        < sentence.iterations
        < len(sentence.tokens)
        <= sentence.iterations + sentence.accepted
    )
    assert sentence.accepted <= sentence.drafted
    (plain,) = (
        shipped("gec")
        .decode("He live in Berlin with his two sister.", "beam")
        .sentences
    )
    assert (plain.iterations, plain.drafted, plain.accepted) == (
        len(plain.tokens) + 1,
        0,
        0,
    )


def test_a_second_call_with_the_same_settings_goes_on_with_what_the_first_has_prepared() -> (
    None
):
    model = shipped("mt")
    first = model.decode("Where do you live?", "gad")
    with mock.patch.object(drafter, "encoder_fingerprint") as compared:
        assert model.decode("Where do you live?", "gad") == first
    compared.assert_not_called()


def test_beam_is_what_fairseqs_own_interface_says_and_aggressive_beam_has_the_same_list() -> (
    None
):
    from fairseq.models.transformer import TransformerModel

    lines = ["Where do you live?", "I have two brothers, and you?"]
    options: dict[str, Any] = {
        "bpe": "subword_nmt",
        "bpe_codes": str(MT / "bpecodes"),
        **MOSES,
    }
    stock = TransformerModel.from_pretrained(
        str(MT), "model.pt", source_lang="en", target_lang="de", **options
    )
    results = shipped("mt").decode(lines, "beam", nbest=3)
    assert [result.text for result in results] == stock.translate(lines, beam=5)
    for result, other in zip(
        results, shipped("mt").decode(lines, "aggressive-beam", nbest=3), strict=True
    ):
        ours, theirs = (one.sentences[0].nbest for one in (other, result))
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx(
            [one.score for one in theirs], abs=1e-4
        )
        assert len(ours) == 3


def test_ones_own_checkpoint_needs_its_tokeniser_and_finds_its_subwords_beside_it() -> (
    None
):
    own = load(MT / "model.pt", source_lang="en", target_lang="de", **MOSES)
    text = "Where do you live? I live in Berlin."
    assert own.decode(text, "greedy").text == shipped("mt").decode(text, "greedy").text
    assert "gad" not in own.modes
    assert not own.corrects
    with pytest.raises(
        AggdecError,
        match=r"^whole \(--whole\): the shipped models have learnt single sentences",
    ):
        shipped("mt").translate(text, whole=True)
    with pytest.raises(AggdecError, match="--decoding gad needs a drafter"):
        own.decode(text, "gad")
    drafted = load(
        MT / "model.pt",
        source_lang="en",
        target_lang="de",
        drafter=MT / "model.pt",
        drafts="whole",
        **MOSES,
    )
    assert set(drafted.modes) - set(own.modes) == {"speculative"}
    result = drafted.decode(text, "speculative")
    assert result.text == own.decode(text, "greedy").text
    assert all(sentence.accepted > 3 for sentence in result.sentences)


def test_a_corrector_of_ones_own_speaks_for_itself_and_the_shipped_one_is_held_back(
    tmp_path: Path,
) -> None:
    shutil.copytree(SHIPPED["gec"].folder, tmp_path / "own")
    own = load(tmp_path / "own/model.pt", tokenizer="as_written")
    assert own.corrects
    assert (
        own.decode("Dear Anna,", "greedy").text
        == own.correct("Dear Anna,").text
        == "Dear Anna,."
    )
    by_path = load(SHIPPED["gec"].folder / "model.pt", tokenizer="as_written")
    assert by_path.decode("Dear Anna,", "greedy").text == "Dear Anna,."
    assert shipped("gec").decode("Dear Anna,", "greedy").text == "Dear Anna,"
    # no corrector
    assert (
        shipped("mt").decode("I was born in 1990.", "greedy").text
        == "Ich wurde 1990 geboren."
    )


def test_the_shipped_corrector_is_careful_and_other_models_are_as_they_were_made() -> (
    None
):
    texts = [
        "She have two brother.",
        "I did not knew that the shop closes so early on sunday.",
        "Il est là avec sa mère.",
    ]
    found = shipped("gec").correct(texts)
    assert (
        found == shipped("gec").decode(texts, **CAREFUL) != shipped("gec").decode(texts)
    )
    assert shipped("gec").correct(texts[0], mode="iad").text == "She has two brothers."
    assert found[2].text == texts[2]
    assert found[2].notes == [
        f"'{texts[2]}': not English: 5 of 6 words are in no list of its words; left as it was"
    ]
    with pytest.raises(AggdecError, match="this model is no corrector"):
        shipped("mt").correct("a")


def test_no_name_is_lost_in_a_greeting_a_signature_or_a_sentence() -> None:
    names = (
        (Path(__file__).parent / "first_names.txt").read_text(encoding="utf-8").split()
    )
    assert len(names) == 109
    letter = "Dear {0},\n\n{0} Smith have sent me to you, because {0} are ill.\n\nBest regards,\n{0}"
    results = shipped("gec").correct([letter.format(name) for name in names])
    assert [
        name
        for name, one in zip(names, results, strict=True)
        if one.text.count(name) != 4
    ] == []
    assert [one.text.split("\n")[0] for one in results] == [
        f"Dear {name}," for name in names
    ]
    assert [one.text.split("\n")[-2:] for one in results] == [
        ["Best regards,", name] for name in names
    ]


def test_what_is_no_prose_stays_and_is_not_translated() -> None:
    text = "```\nif x: has_two(brother)\n```\n---\n|---|\n😀\n+1 (555) 123\n"
    text += "https://example.org/she-have\n> Yes.\n- Yes.\n"
    assert shipped("gec").decode(text, "iad").text == text
    assert shipped("mt").decode(text).text == text.replace("Yes", "Ja")


def test_a_tokeniser_that_escapes_what_the_model_has_not_learnt_is_pointed_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    load(MT / "model.pt", tokenizer="moses")  # the languages are the checkpoint's
    assert (
        "&amp;, &quot;, &apos;, which the model has not learnt: moses_no_escape"
        in caplog.text
    )


def test_tokens_are_taken_as_they_are_one_sentence_a_text() -> None:
    own = load(MT / "model.pt", source_lang="en", target_lang="de", bpe="subword_nmt")
    result = own.decode("Where do you live ? I live in Berlin .", "greedy")
    assert [sentence.source for sentence in result.sentences] == [
        "Where do you live ? I live in Berlin ."
    ]


def test_missing_subwords_are_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("model.pt", "dict.en.txt", "dict.de.txt"):
        (tmp_path / name).symlink_to(MT / name)
    plain = load(tmp_path / "model.pt", source_lang="en", target_lang="de", **MOSES)
    with caplog.at_level(logging.WARNING):
        plain.decode(["bicycles", "The bicycle's unbelievable."], "greedy")
    assert len(caplog.records) == 1
    assert "--bpe" in caplog.text


def test_a_degenerate_output_is_replaced_by_its_source_and_says_so() -> None:
    text = "he she it they we " * 12
    result = shipped("gec").decode(text.strip() + ".", "iad")
    kept = [sentence for sentence in result.sentences if sentence.note]
    assert kept
    assert all(sentence.text == sentence.source for sentence in kept)


def test_bad_input_is_named() -> None:
    model = shipped("gec")
    with pytest.raises(AggdecError, match="mode fast: choose one of beam, greedy"):
        model.decode("a", "fast")
    with pytest.raises(AggdecError, match="lenpan: neither an option"):
        model.decode("a", lenpan=1)
    with pytest.raises(AggdecError, match="cannot honour --nbest"):
        model.decode("a", "iad", nbest=2)
    with pytest.raises(AggdecError, match="--batch-size 0: must be at least 1"):
        model.decode("a", batch_size=0)
    for options, message in (
        ({"foo": 1}, "foo: neither an option of the task"),
        ({"device": "cuda:99"}, "device cuda:99: cannot be used here"),
        ({"tokenizer": "mosses"}, "tokenizer mosses: choose one of as_written, moses"),
        (
            {"bpe": "subword_nmt", "bpe_codes": str(MT)},
            f"--bpe-codes {MT}: a folder; name a file in it",
        ),
        (
            {"task": "translation_from_pretrained_bart"},
            "was trained without --langs: name the task of its training, or",
        ),
        (
            {"task": "speech_to_text"},
            f"{MT}/config.yaml not found: check data folder and task",
        ),
    ):
        with pytest.raises(AggdecError, match=message):
            load(MT / "model.pt", **cast(dict[str, Any], options))
    for path, message in (
        ("nowhere/model.pt", "no such file"),
        (MT, f"checkpoint {MT}: a folder; name a file in it"),
    ):
        with pytest.raises(AggdecError, match=message):
            load(path, data=MT, source_lang="en", target_lang="de")
    with pytest.raises(
        AggdecError, match="no model 'no' is shipped; there are gec, mt"
    ):
        load.shipped("no")
