"""What a correction has of its source: characters and white space of all that was kept."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairseq_aggdec.text.line import moses
from fairseq_aggdec.text.spacing import match_spacing

TEXTS = st.text(
    "abc 019.,'\"()-!?:;&$%/+“”‘’–—…\u00a0\u2028[]{}€é½²#@*_=~^|\\<>`МЖ你한हि😀👍🏽\u200d\ufe0f•→\t\r\n",
    max_size=30,
)
KEYBOARD = str.maketrans(
    {
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
        **dict.fromkeys("–—", "-"),
        "…": "...",
    }
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS)
@example(
    "On 12/03/2021 at 17:30, 3:1 and +49 (0)30 and/or  two\ttabs ;) me@x.org http://x.org/a?b=c&d=e\n`x[i]+=1;`"
)
@example("“It’s” co\u00adoperative — ‘don’t’ … & &amp; well - known well-known")
def test_what_moses_took_apart_comes_back_as_it_was(source: str) -> None:
    tokeniser, detokeniser = moses()
    assert (
        match_spacing(source, detokeniser.detokenize(tokeniser.tokenize(source)))
        == source.strip()
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS, TEXTS.map(lambda text: text.replace("&", "").replace("@", "")))
def test_all_other_characters_of_the_output_are_kept(source: str, output: str) -> None:
    was, now = (
        "".join(text.translate(KEYBOARD).split())
        for text in (output, match_spacing(source, output))
    )
    assert now == was


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_a_changed_word_changes_nothing_around_it(before: str, after: str) -> None:
    tokeniser, detokeniser = moses()
    source = f"{before} wrod {after}"
    output = f"{before} word {after}"
    assert (
        match_spacing(source, detokeniser.detokenize(tokeniser.tokenize(output)))
        == output.strip()
    )


@pytest.mark.parametrize(
    "source, output, matched",
    [
        # insertions
        ("a b", "a, b", "a, b"),
        ("a  b", "a, b", "a,  b"),
        ("a  b", "a new b", "a new  b"),
        ("Bonjour !", "Bonjour toi!", "Bonjour toi !"),
        ("(b c) d", "(a b c). d", "(a b c). d"),
        ("well known man", "well-known man", "well-known man"),
        ("I go home", "I go home.", "I go home."),
        # deletions
        ("a very  big b", "a big b", "a  big b"),
        ("a very\nbig b", "a big b", "a\nbig b"),
        ("a, very, b", "a, b", "a, b"),
        ("a (very) b c.", "a very b.", "a very b."),
        ("I go home ,", "I go home", "I go home"),
        ('"very big" b', '" big" b', '"big" b'),
        ("12/3/2021", "12 / 2021", "12/2021"),
        ("well-known man", "well known man", "well known man"),
        # replacements
        ("He big  house", "He, small house", "He, small  house"),
        ("a small b", "a the (b", "a the (b"),
        ("dont  go/stay", "don't go / leave", "don't  go/leave"),
        ("“informations”", '" information "', "“information”"),
        ("the end. But", "the end, but", "the end, but"),
        # Moses
        ("a and b", "a @-@ b &amp; c", "a-b & c"),
        ("a &amp; b", "a &amp; c", "a &amp; c"),
        # neither capitals nor a mistyped apostrophe count as kept
        ("he don`t", "He don't", "He don't"),
        ("", "a", "a"),
        ("a", "", ""),
    ],
)
def test_changes_are_spaced_as_text(source: str, output: str, matched: str) -> None:
    assert match_spacing(source, output) == matched
