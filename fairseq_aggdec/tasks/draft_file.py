"""`--draft-file`: the user's draft for each sentence of a data set."""

from functools import cached_property
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, EpochBatchIterator, FairseqDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask

from fairseq_aggdec.decoding.drafters.input_guided import FOREIGN
from fairseq_aggdec.errors import AggdecError, reason_of
from fairseq_aggdec.files import read_text_lines
from fairseq_aggdec.tasks.data_folder import Hypothesis


def draft_tokens(line: str, dictionary: Dictionary) -> list[int]:
    """A line of subwords in the target's vocabulary, without EOS; unknown words are `FOREIGN`, and match nothing."""
    tokens = dictionary.encode_line(
        line, add_if_not_exist=False, append_eos=False
    ).tolist()
    return [FOREIGN if token == dictionary.unk() else token for token in tokens]


class DraftFile(FairseqTask):
    """Mixin, named before fairseq's task: samples get `drafts`, a list of `draft_tokens` for each `id`."""

    @cached_property
    def _draft_lines(self) -> list[str] | None:
        path = self.decoding.draft_file
        try:
            return None if path is None else read_text_lines(Path(path))
        except OSError as error:
            raise AggdecError(
                f"--draft-file {reason_of(error)}: name a file of text"
            ) from error

    def get_batch_iterator(
        self, dataset: FairseqDataset, *args: Any, **kwargs: Any
    ) -> EpochBatchIterator:
        """As fairseq's; raises `AggdecError` where --draft-file has not a line for each sentence of a split."""
        if self._draft_lines is not None:
            split = next(
                (name for name, loaded in self.datasets.items() if loaded is dataset),
                None,
            )
            if split is None:
                raise AggdecError(
                    "--draft-file: is read by fairseq-generate; for lines of text take aggdec decode"
                )
            if len(self._draft_lines) != len(dataset):
                raise AggdecError(
                    f"--draft-file {self.decoding.draft_file}: has {len(self._draft_lines)} lines, and the "
                    f"split {split} {len(dataset)} sentences: give each a line, empty where there is no draft"
                )
        return super().get_batch_iterator(dataset, *args, **kwargs)

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> list[list[Hypothesis]]:
        """As fairseq's, with the sample's drafts."""
        if self._draft_lines is not None:
            lines = [self._draft_lines[number] for number in sample["id"].tolist()]
            sample = {
                **sample,
                "drafts": [
                    draft_tokens(line, self.target_dictionary) for line in lines
                ],
            }
        return super().inference_step(generator, models, sample, *args, **kwargs)
