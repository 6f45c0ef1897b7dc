"""`aggdec verify --against-transformers`: greedy search of an imported model, compared with that of transformers."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.generation.modes import GREEDY
from fairseq_aggdec.hub.importing import imported
from fairseq_aggdec.hub.settings import Settings
from fairseq_aggdec.hub.tokenizers import read_tokenizer, symbol
from fairseq_aggdec.model import Model
from fairseq_aggdec.tasks.loading import batches_of


class InTheirNumbers:
    """A model that `load.hub` has loaded, whose tokens have transformers' numbers."""

    def __init__(self, folder: Path, model: Model) -> None:
        """`folder`: the downloaded one."""
        tokenizer = read_tokenizer(folder)
        self.model = model
        self.source, self.target = (
            {symbol(token, number): number for number, token in enumerate(tokens)}
            for tokens in (tokenizer.tokens, tokenizer.target_tokens)
        )

    def inputs(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """What the encoder gets of each text."""
        for batch in batches_of(
            self.model.task, [self.model.encode(text) for text in texts], 1
        ):
            tokens = batch["net_input"]["src_tokens"][0].tolist()
            yield [
                self.source[self.model.task.source_dictionary[token]]
                for token in tokens
            ]

    def outputs(self, texts: Sequence[str], size: int) -> list[dict[str, Any]]:
        """The greedy output of each text, in batches of `size`; beside fairseq's entries `output`, its tokens."""
        model, task = self.model, self.model.task
        search = Namespace(**{**model.search, "beam": 1})
        generator = task.build_generator(
            model.models, search, decoding=task.decoding.with_mode(GREEDY)
        )
        best: dict[int, dict[str, Any]] = {}
        for batch in batches_of(task, [model.encode(text) for text in texts], size):
            found = task.inference_step(generator, model.models, batch)
            best |= dict(
                zip(batch["id"].tolist(), (own[0] for own in found), strict=True)
            )
        for own in best.values():
            own["output"] = [
                self.target[task.target_dictionary[token]]
                for token in own["tokens"].tolist()
            ]
        return [best[number] for number in range(len(texts))]


def differences(
    folder: Path,
    languages: tuple[str | None, str | None],
    texts: Sequence[str],
    size: int,
) -> list[str]:
    """A line for each text whose input of the encoder or greedy output is not that of transformers.

    Args:
        folder: the downloaded one.
        languages: of source and target; None: the model's own.
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
    model, settings = Model.hub(folder, *languages), Settings.read(imported(folder))
    ours, before, lines = InTheirNumbers(folder, model), [], []
    if "{source}" in settings.source:
        tokenizer.src_lang = model.source_lang
    elif model.target_lang in settings.languages and "{target}" in settings.source:
        # else in the text
        before = [ours.source[settings.languages[model.target_lang]]]
    forced = [
        ours.target[model.task.target_dictionary[token]]
        for token in model.task.form.forced
    ]
    first = {"forced_bos_token_id": forced[0]} if forced else {}
    for text, tokens, found in zip(
        texts, ours.inputs(texts), ours.outputs(texts, size), strict=True
    ):
        expected = before + tokenizer(text).input_ids
        if tokens != expected:
            lines.append(
                f"'{text[:60]}': the encoder reads {tokens}, in transformers {expected}"
            )
            continue
        output = theirs.generate(
            torch.tensor([expected]), num_beams=1, do_sample=False, **first
        )[0, 1:].tolist()
        # fairseq ends an output that its limit cuts short
        if output not in (found["output"], found["output"][:-1]):
            lines.append(
                f"'{text[:60]}': the output is {found['output']}, in transformers {output}"
            )
    return lines
