"""What is common to all batches of a process."""

import gc

from fairseq_aggdec.decoding.beam.loop import no_garbage_collection


def test_pythons_collector_stays_off_until_the_last_of_several_threads_is_done() -> None:
    one, other = no_garbage_collection(), no_garbage_collection()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert not gc.isenabled()
    other.__exit__(None, None, None)
    assert gc.isenabled()
