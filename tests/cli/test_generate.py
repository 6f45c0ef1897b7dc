"""fairseq-generate, in part in processes of its own: the plugin's output against stock `--beam 1`."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.cli.correction import (
    EARLIER,
    PLUGIN,
    SENTENCES,
    WITHOUT_LONG,
    Process,
    assert_same_hypotheses,
    assert_same_lists,
    at_once,
    generate,
    generate_here,
    summaries,
)
from tests.support.helpers import ToyModel, parse_generate, run_cli


def test_beam_and_the_task_translation_print_what_stock_fairseq_prints_to_the_last_digit(tmp_path: Path) -> None:
    """By a shipped model, which fairseq can read without this plugin, too."""
    model = PLUGIN / "demo" / "mt"
    sentences = (model / "sentences.txt").read_text(encoding="utf-8").splitlines()[:4]
    (tmp_path / "input").write_text("".join(line + "\n" for line in sentences), encoding="utf-8")
    command = [model, "-s", "en", "-t", "de", "--path", model / "model.pt", "--cpu"]
    command += ["--beam", 3, "--nbest", 2, "--buffer-size", 4, "--input", tmp_path / "input"]
    ours = ["--user-dir", PLUGIN]
    beam = [*ours, "--task", "aggressive_translation", "--decoding", "beam"]
    runs = at_once(*(partial(run_cli, "fairseq-interactive", *command, *options) for options in ([], ours, beam)))
    stock, translation, searched = (re.findall(r"^[SHDP]-.*$", run.stdout, re.MULTILINE) for run in runs)
    assert len(stock) == len(sentences) * (1 + 2 * 3)
    assert stock == translation == searched


def test_iad_gives_the_hypotheses_of_beam_one_and_its_statistics_fit_them(
    correction_model: ToyModel, beam_one: Process, tmp_path: Path
) -> None:
    """By a model that corrects and copies: most drafts are accepted, and some sentences take one iteration."""
    stats = tmp_path / "stats.jsonl"
    stats.write_text('{"id": 999}\n', encoding="utf-8")  # of an earlier run, and replaced
    options = ["--print-step", "--retain-iter-history", "--decoding-stats", stats, "--batch-size", 1]
    process = generate(correction_model, "iad", *options)
    assert_same_hypotheses(process.stdout, beam_one.stdout)
    assert (process.stdout + process.stderr).count("--beam is set to 1") == 1
    assert "Generate test with beam=1: BLEU" in process.stdout
    records = {record["id"]: record for record in map(json.loads, stats.read_text(encoding="utf-8").splitlines())}
    sentences = parse_generate(process.stdout)
    assert records.keys() == sentences.keys()
    assert sum(sentence.steps == 1 for sentence in sentences.values()) >= 3
    for number, sentence in sentences.items():
        record, source = records[number], sentence.source.split()
        assert sentence.history[0].split() == source, "the first draft is the source"
        assert (record["source_length"], record["output_length"]) == (len(source), len(sentence.tokens))
        steps = (sentence.steps, len(sentence.history), len(record["accepted_per_iteration"]))
        assert steps == (record["iterations"],) * 3
        assert record["accepted"] == sum(record["accepted_per_iteration"]) <= record["drafted"]
        # every iteration adds one token of the verifier's own, unless an accepted EOS ends the sentence
        own = len(sentence.tokens) + 1 - record["accepted"]
        assert own in (record["iterations"], record["iterations"] - 1)
        assert (record["edit_ratio"] == 0) == (source == sentence.tokens)
    [summary] = summaries(process.stdout + process.stderr)
    assert summary["sentences"] == SENTENCES
    assert summary["mean_accepted"] > 1.5
    accepted, drafted = (sum(record[name] for record in records.values()) for name in ("accepted", "drafted"))
    assert summary["acceptance_rate"] == pytest.approx(100 * accepted / drafted, abs=0.1)


def test_greedy_gives_the_hypotheses_of_beam_one(correction_model: ToyModel, beam_one: Process, tmp_path: Path) -> None:
    """With --results-path, which moves all output to a file, the summary line included."""
    process = generate(correction_model, "greedy", "--results-path", tmp_path)
    results = (tmp_path / "generate-test.txt").read_text(encoding="utf-8")
    assert_same_hypotheses(results, beam_one.stdout)
    assert not parse_generate(process.stdout)
    assert (process.stdout + process.stderr + results).count("mean accepted tokens") == 1
    assert "Generate test with beam=1: BLEU" in results


def test_aggressive_beam_gives_the_lists_of_the_beam(correction_model: ToyModel, correction_drafter: Path) -> None:
    """With a drafter; without one by fairseq-interactive."""
    lists = ["--beam", 4, "--nbest", 4]
    stock = generate_here(correction_model, None, *lists)
    options = [*lists, "--batch-size", 6, "--drafter-path", correction_drafter]
    output = generate_here(correction_model, "aggressive-beam", *options)
    assert_same_lists(output, stock, hypotheses=4)
    assert "Generate test with beam=4: BLEU" in output


def test_search_options_and_an_ensemble(correction_model: ToyModel, correction_drafter: Path) -> None:
    [earlier] = correction_model.checkpoint.parent.glob(EARLIER)
    ensemble = f"{earlier}:{correction_model.checkpoint}"
    lengths = "--min-len 3 --max-len-a 0.5 --max-len-b 4 --lenpen 0.4"
    options = f"{lengths} --prefix-size 2 --unkpen 2 --temperature 1.3 --no-repeat-ngram-size 2".split()
    stock = generate_here(correction_model, None, *WITHOUT_LONG, *options, path=ensemble)
    drafters = {"iad": [], "gad": ["--drafter-path", correction_drafter]}
    drafters["speculative"] = ["--drafter-path", earlier, "--drafts", "whole"]
    for decoding, drafter in drafters.items():
        found = generate_here(correction_model, decoding, *drafter, *WITHOUT_LONG, *options, path=ensemble)
        assert_same_hypotheses(found, stock, tolerance=5e-3)
