"""The tables that cnndm reproduces."""

from experiments.common_tables import summaries

TEACHERS = {
    "Teacher, BART": "teacher-beam4",
    "BART-base (beam = 5) without distillation": "undistilled-beam5",
}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    ours = "beam 5 and 1 are timed as fairseq has them, which bans n-grams only where its CUDA extension is built"
    return [summaries(results, teachers=TEACHERS, ours=ours)]
