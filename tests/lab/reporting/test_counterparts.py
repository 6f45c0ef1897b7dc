"""tables.yaml: which measurement stands for which entry of a paper's table."""

from pathlib import Path

import pytest

from fairseq_aggdec.cli.experiments import read_experiment
from fairseq_aggdec.data.experiment import Experiment
from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.lab.evaluation.metrics import all_metrics
from fairseq_aggdec.lab.reporting.counterparts import FILE, read_tables
from fairseq_aggdec.lab.reporting.measures import MEASURES

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
EXPERIMENTS = sorted(path.parent for path in CONFIGS.glob(f"*/{FILE}"))


def write(folder: Path, text: str) -> Path:
    (folder / FILE).write_text(text, encoding="utf-8")
    return folder


def test_short_and_long_forms(tmp_path: Path) -> None:
    text = """
    score: [gleu]
    tables:
      ge2022/6:
        set: valid
        differs: small
        record: "bench/k{k}"
        beam: AR (beam = 5)
        columns: {Tok.: accepted tokens, Speed: {measure: speed-up, batch_size: 8, mode: other}}
        rows:
          AR (beam = 5): {label: beam5, differs: tiny}
          GAD++ (k = 10): {k: 10, label: "gad++-{k}", mode: "gad++:3:1"}
          GAD++ (k = 15): {k: 15, only: [Speed], over: greedy, over_record: "bench/k10"}
          GAD++ (k = 20): {label: gad, measures: {Tok.: accepted block}}
          GAD++ (k = 25): {label: "{k}{mode}", k: big-, mode: nar, record: "bench/{k}bench"}
    """
    tables = read_tables(write(tmp_path, text))
    assert tables.score == ("gleu",)
    counterparts = tables.counterparts["ge2022/6"]
    assert (counterparts.greedy, counterparts.beam) == (None, "AR (beam = 5)")
    assert (counterparts.differs["AR (beam = 5)"], counterparts.differs["GAD++ (k = 10)"]) == ("tiny", "small")
    sources = counterparts.sources
    assert len(sources) == 9
    big = sources["GAD++ (k = 25)", "Tok."]
    assert (big.label, big.mode, big.record) == ("big-nar", "nar", "bench/big-bench")
    assert sources["GAD++ (k = 20)", "Tok."].measure == "accepted block"
    assert sources["GAD++ (k = 20)", "Speed"].measure == "speed-up"
    first = sources["AR (beam = 5)", "Tok."]
    assert (first.measure, first.label, first.mode, first.set) == ("accepted tokens", "beam5", "beam5", "valid")
    ten = sources["GAD++ (k = 10)", "Speed"]
    assert (ten.label, ten.record, ten.over_record, ten.batch_size) == ("gad++-10", "bench/k10", "bench/k10", 8)
    assert ten.mode == "gad++:3:1", "a row's word comes before a column's"
    fifteen = sources["GAD++ (k = 15)", "Speed"]
    assert (fifteen.record, fifteen.over, fifteen.over_record) == ("bench/k15", "greedy", "bench/k10")
    assert fifteen.mode == "other"


def test_a_further_system_of_ours_stands_below_the_papers_that_it_is_compared_with(tmp_path: Path) -> None:
    text = """
    tables:
      ge2022/9:
        greedy: AR-base (greedy)
        columns: {BLEU: sacrebleu}
        axes: {n: [2, 6]}
        rows:
          AR-base (greedy): greedy
          GAD-base: gad
          "GAD-base, {n} layers": {of: GAD-base, label: "gad-{n}"}
    """
    counterparts = read_tables(write(tmp_path, text)).counterparts["ge2022/9"]
    assert list(counterparts.table.rows)[:4] == [
        "AR-base (greedy)",
        "GAD-base",
        "GAD-base, 2 layers",
        "GAD-base, 6 layers",
    ]
    assert counterparts.table.value("GAD-base, 2 layers", "BLEU") == 28.73
    assert counterparts.sources["GAD-base, 6 layers", "BLEU"].label == "gad-6"


def test_mistakes_are_named(tmp_path: Path) -> None:
    for rows, message in (
        ("{GAD-base: {of: GAD-base, label: x}}", "has the row 'GAD-base' itself: remove its `of`, or rename it"),
        ("{mine: {of: GAD, label: x}}", "table ge2022/9 has no row 'GAD'"),
    ):
        with pytest.raises(AggdecError, match=message):
            read_tables(write(tmp_path, f"tables: {{ge2022/9: {{columns: {{Tok.: x}}, rows: {rows}}}}}"))
    with pytest.raises(AggdecError, match=r"tables.yaml: table ge2022/9 has no row 'GAD'"):
        read_tables(write(tmp_path, "tables: {ge2022/9: {columns: {Tok.: x}, rows: {GAD: gad}}}"))


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=lambda folder: folder.name)
def test_experiments_ask_for_measures_that_exist_and_say_in_what_they_differ(folder: Path) -> None:
    tables = read_tables(folder)
    assert tables.counterparts
    known = set(MEASURES)
    if (folder / "prepare.py").is_file():
        names = [*Experiment.read(folder / "prepare.py").score, *tables.score]
        known |= {column for name in names for column in all_metrics()[name].columns}
    for counterparts in tables.counterparts.values():
        assert counterparts.sources
        for source in counterparts.sources.values():
            assert source.measure in known, counterparts.table.name
    for own in tables.own.values():
        for table in own:
            assert {source.measure for cell in table.cells.values() for source in cell.sources} <= known, table.title
            if table.figure:
                assert {len(cell.sources) for cell in table.cells.values()} == {2} == {len(table.figure)}
    # a stand-in says beside each row in what it differs
    for counterparts in tables.counterparts.values():
        said = {system for system, text in counterparts.differs.items() if text}
        rows = {system for system, _ in counterparts.sources}
        assert said == (set() if read_experiment(folder).full_size else rows), counterparts.table.name
