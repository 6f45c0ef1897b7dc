"""The commands for an imported model, as they are typed."""

from __future__ import annotations

import shlex
from pathlib import Path

from fairseq_aggdec.errors import option_name
from fairseq_aggdec.generation.modes import AGGRESSIVE_BEAM, BEAM, GREEDY, IAD
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.hub.settings import MODEL, Settings


def commands(folder: Path, settings: Settings) -> str:
    """Lines for a shell; `text.txt`, `train.txt` and `valid.txt` are the user's, with a sentence a line."""
    name, model = shlex.quote(str(folder)), shlex.quote(str(folder / MODEL))
    # the first other language, or the only one
    source = settings.source_lang or min(settings.languages, key=settings.target_lang.__eq__)
    target = settings.target_lang or min(settings.languages, key=source.__eq__)
    pair = f"-s {source} -t {target}"
    search = {name: value for name, value in settings.generation.items() if value != getattr(SearchOptions, name, 0)}
    beam = search.pop("beam", settings.generation.get("beam", 1))
    flags = "".join(f" {option_name(name)}{'' if value is True else f' {value:g}'}" for name, value in search.items())
    modes = [f"{AGGRESSIVE_BEAM}:{beam}", GREEDY, IAD]
    if "block_ngrams" not in search:  # fairseq's own search bans none
        modes.insert(0, f"{BEAM}{beam}")
    return "\n".join(
        (
            f'aggdec translate --model {name} {pair} "A sentence."',
            f"aggdec binarize {name} data-bin {pair} --test text.txt --train train.txt --valid valid.txt",
            f'fairseq-generate data-bin --user-dir "$(aggdec user-dir)" --task aggressive_hub_translation '
            f"--path {model} {pair} --bpe hub --hub-folder {name} --decoding {AGGRESSIVE_BEAM} --beam {beam}{flags}",
            f"aggdec bench data-bin --path {model} {pair} --modes {','.join(modes)}{flags}",
            f"aggdec drafter --verifier {model} --data data-bin {pair} --out drafter",
        )
    )
