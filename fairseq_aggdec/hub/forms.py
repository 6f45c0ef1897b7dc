"""The tokens around a text in the sources and outputs of an imported model, for a pair of languages."""

from __future__ import annotations

from difflib import get_close_matches

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.settings import Settings


def tokens_around(settings: Settings, source_lang: str, target_lang: str) -> tuple[list[str], list[str], list[str]]:
    """The tokens before a source's text, those behind it, and the first ones of every output.

    Raises:
        AggdecError: the model has no such language.
    """
    before, _, after = settings.source.partition("{text}")
    parts = before.split(), after.split(), settings.forced
    named = {"{source}": ("-s", source_lang), "{target}": ("-t", target_lang)}
    for place, (option, name) in named.items():
        if any(place in part for part in parts) and name not in settings.languages:
            nearest = get_close_matches(name, settings.languages, 4, cutoff=0)
            raise AggdecError(
                f"{option} {name}: the model has no such language; of its {len(settings.languages)} the nearest are "
                f"{', '.join(nearest)}"
            )
    if not settings.languages and settings.target_lang not in (target_lang, "target"):
        raise AggdecError(f"-t {target_lang}: the model has no such language; its only one is {settings.target_lang}")
    words = {place: settings.languages.get(name, "") for place, (_, name) in named.items()}
    before_it, behind_it, forced = ([words.get(word, word) for word in part] for part in parts)
    return before_it, behind_it, forced
