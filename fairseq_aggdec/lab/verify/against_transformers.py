"""`aggdec verify --against-transformers`: greedy search of an imported model, compared with that of transformers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import GREEDY
from fairseq_aggdec.hub.importing import imported
from fairseq_aggdec.hub.settings import T5, Settings
from fairseq_aggdec.hub.tokenizers import read_tokenizer, symbol
from fairseq_aggdec.lab.bench.fairseq_runner import FairseqRunner
from fairseq_aggdec.lab.bench.modes import ModeSpec
from fairseq_aggdec.lab.bench.rounds import decode_once
from fairseq_aggdec.model import Model, load
from fairseq_aggdec.tasks.loading import batches_of


class InTheirIds:
    """A model that `load.hub` has loaded, whose tokens have transformers' ids."""

    def __init__(self, folder: Path, model: Model) -> None:
        """`folder`: the downloaded one."""
        tokenizer = read_tokenizer(folder)
        self.model = model
        self.source, self.target = (
            {symbol(token, place): place for place, token in enumerate(tokens)}
            for tokens in (tokenizer.tokens, tokenizer.target_tokens)
        )

    def inputs(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """What the encoder gets of each text."""
        symbols = self.model.task.source_dictionary.symbols
        for batch in self._batches(texts, 1):
            tokens = batch["net_input"]["src_tokens"][0].tolist()
            yield [self.source[symbols[token]] for token in tokens]

    def outputs(self, texts: Sequence[str], size: int) -> list[dict[str, Any]]:
        """The greedy output of each text, in batches of `size`; beside fairseq's entries `output`, its tokens."""
        model = self.model
        symbols = model.task.target_dictionary.symbols
        search = dict(model.search)
        search.pop("beam", None)  # the mode's
        runner = FairseqRunner(
            model.task,
            model.models,
            self._batches(texts, size),
            ModeSpec.parse(GREEDY),
            **search,
        )
        found = sorted(decode_once(runner).outputs.items())
        return [
            {
                **(output.hypothesis or {}),
                "output": [self.target[symbols[token]] for token in output.tokens],
            }
            for _, output in found
        ]

    def _batches(self, texts: Sequence[str], size: int) -> list[dict[str, Any]]:
        model = self.model
        return batches_of(model.task, [model.encode(text) for text in texts], size)


def differences(
    folder: Path,
    languages: tuple[str | None, str | None],
    texts: Sequence[str],
    size: int,
) -> list[str]:
    """A line for each text whose input of the encoder or greedy output is not that of transformers.

    Args:
        folder: the downloaded one.
        languages: of source and target; None: the model's.
        texts: each a sentence.
        size: of the batches, of this package.

    Raises:
        AggdecError: transformers is not installed, or what `load.hub` raises.
    """
    try:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # type: ignore[import-not-found]
    except ImportError as error:
        raise AggdecError(
            "--against-transformers: needs transformers: pip install transformers"
        ) from error
    tokenizer = AutoTokenizer.from_pretrained(folder)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    model = load.hub(folder, *languages)
    settings = Settings.read(imported(folder))
    ours = InTheirIds(folder, model)
    # the languages: in the text, before it, or as the first token of the output
    before = []
    if "{source}" in settings.source:
        tokenizer.src_lang = model.source_lang
    elif model.target_lang in settings.languages and "{target}" in settings.source:
        before = [ours.source[settings.languages[model.target_lang]]]
    forced = [
        ours.target[model.task.target_dictionary[token]]
        for token in model.task.form.forced
    ]
    given = {"forced_bos_token_id": forced[0]} if forced else {}
    if settings.family in T5:  # most name no length
        given["max_new_tokens"] = settings.generation["max_len_b"]
    lines = []
    for text, tokens, found in zip(
        texts, ours.inputs(texts), ours.outputs(texts, size), strict=True
    ):
        expected = before + tokenizer(text).input_ids
        if tokens != expected:
            lines.append(
                f"'{text[:60]}': the encoder reads {tokens}, in transformers {expected}"
            )
            continue
        ids = torch.tensor([expected])
        output = theirs.generate(ids, num_beams=1, do_sample=False, **given)
        wanted = output[0, 1:].tolist()
        # fairseq ends an output that its limit cuts short
        if wanted not in (found["output"], found["output"][:-1]):
            lines.append(
                f"'{text[:60]}': the output is {found['output']}, in transformers {wanted}"
            )
    return lines
