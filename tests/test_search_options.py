"""fairseq-generate's search options on other command lines."""

import argparse

import pytest

from fairseq_aggdec.tasks.search_options import add_search_options, given_search_options


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_search_options(parser)
    return parser.parse_args(arguments)


def test_only_what_was_given_counts() -> None:
    assert given_search_options(parsed()) == {}
    given = parsed("--lenpen", "0", "--max-len-b", "80", "--no-repeat-ngram-size", "3")
    assert given_search_options(given) == {"lenpen": 0.0, "max_len_b": 80, "no_repeat_ngram_size": 3}
    assert given_search_options(argparse.Namespace(lenpen=2.0)) == {"lenpen": 2.0}  # of a command that lacks the others


def test_lengths_are_whole_numbers() -> None:
    with pytest.raises(SystemExit):
        parsed("--min-len", "1.5")
