"""The numbers of the papers' tables."""

import pytest

from fairseq_aggdec.lab.reporting.paper_tables import EVERY_TOKEN, all_tables, paper_table

ASKED_FOR = {
    "ge2022": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "12", "14", "15", "16"],
    "xia2022": ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
    "sun2021": ["1", "2", "3", "4", "5", "6", "8"],
    "stern2018": ["1", "2", "4"],
}


@pytest.mark.parametrize(
    ("table", "system", "column", "expected"),
    [
        # typed from the papers, not from the files
        ("ge2022/1", "with synthetic data (IAD)", "F0.5", 44.91),
        ("ge2022/5", "GAD++ (k = 25, high-quality)", "EN-RO", 35.32),
        ("ge2022/5", "AR verifier (beam = 1)", "Iter.", "N"),
        ("ge2022/8", "GAD++ (k = 30, top-5, τ = 6.0)", "BLEU", 29.15),
        ("ge2022/9", "GAD++-base (top-5, τ = 3.0) with NAR-big", "Tok.", 9.73),
        ("ge2022/14", "WMT16 EN-RO: GAD++ (high-quality)", "X→EN τ", 2.0),
        ("xia2022/9", "CMLM (T = 4)", "Rep.", 1.13),
        ("sun2021/1", "without synthetic data (greedy)", "Total Latency", 328),
        ("stern2018/1", "k = 8", "Both Tok.", 4.69),
        ("stern2018/4", "Blockwise parallel decoding (k = 8)", "Speedup", 3.31),
    ],
)
def test_numbers(table: str, system: str, column: str, expected: float | str | None) -> None:
    assert paper_table(table).value(system, column) == expected


def test_every_table_is_there_and_whole() -> None:
    expected = {f"{paper}/{number}" for paper, numbers in ASKED_FOR.items() for number in numbers}
    assert set(all_tables()) == expected
    for table in all_tables().values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert table.rows
        assert all(column.unit for column in table.columns), table.name
        for system, values in table.rows.items():
            assert len(values) == len(names), (table.name, system)
            for column, value in zip(table.columns, values, strict=True):
                assert value is None or isinstance(value, int | float) or value == EVERY_TOKEN
                if isinstance(value, float):
                    assert round(value, column.digits) == value, f"{table.name}, {system}: {value} loses digits"
