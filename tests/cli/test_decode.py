"""What `aggdec decode --help` lists without loading fairseq; what it decodes is tested in `tests/shards`."""

from fairseq.data.encoders import BPE_REGISTRY, TOKENIZER_REGISTRY

import fairseq_aggdec
from fairseq_aggdec.cli.decode import SUBWORDS, TOKENIZERS


def test_the_help_names_every_tokenizer_and_every_kind_of_subwords() -> None:
    fairseq_aggdec.register()
    assert set(TOKENIZERS) == set(TOKENIZER_REGISTRY)
    assert set(SUBWORDS) == set(BPE_REGISTRY)
