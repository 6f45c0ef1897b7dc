"""Results of an experiment that never ran."""

from fairseq_aggdec.lab.reporting.results import Decoding, Results
from tests.lab.benchmarking.tiny import made_up_record, made_up_run

SCORES = {"teacher-beam5": 36.0, "beam5": 35.9, "beam1": 35.4, "nar": 28.7, "gad": 35.4, "gad++-3-1": 35.15}


def made_up_results(stand_in: bool = True) -> Results:
    """`bench` times four sentences of 46 tokens; `gad` and `gad++:3:1` take 10 and 8 iterations for them."""
    runs = [
        made_up_run("beam5", 0.4),
        made_up_run("beam1", 0.2, iterations=None),
        made_up_run("gad", 0.1, iterations=[2, 2, 3, 3], drafted=[12] * 4, accepted=[6] * 4, bleu=33.0),
        made_up_run(
            "gad++:3:1",
            0.08,
            iterations=[2, 2, 2, 2],
            modules={"verifier's encoder": 0.1, "drafter": 0.3, "rest": 0.1},
            host_bytes=2**21,
        ),
        made_up_run("gad", 0.3, batch_size=2, iterations=[2, 2, 3, 3]),
    ]
    record = made_up_record(runs)
    rows = [{"name": name, "sentences": 4, "scores": {"sacrebleu": value}} for name, value in SCORES.items()]
    return Results(
        experiment="tatoeba_en_de",
        title="A made-up experiment",
        stand_in=stand_in,
        date="2030-01-01T00:00:00+00:00",
        commit=None,
        command="aggdec report experiment tatoeba_en_de",
        machine=record.machine,
        scores=[{"test_set": "test", "subset": "test", "sentences": 4, "rows": rows}],
        decodings=[Decoding("test", "gad", 40, 100, 470, 800, 370, seconds=5.0, command="fairseq-generate DATA")],
        records={"bench": record},
    )
