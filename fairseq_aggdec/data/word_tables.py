"""How the word tables of this folder are written down: as text, which is easier to read and to extend than literals."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text, separated by white space."""
    return frozenset(text.split())


def replacement_table(text: str, separator: str | None = None) -> dict[str, tuple[str, ...]]:
    """Reads ``correct: wrong wrong; ...`` into {correct: (wrong, ...)}; a form equal to the correct one is left out.

    Args:
        text: the entries, separated by semicolons.
        separator: what stands between the wrong forms: white space, or a comma where forms may hold spaces.

    Raises:
        ValueError: an entry has no colon, no wrong form, or stands twice.
    """
    table: dict[str, tuple[str, ...]] = {}
    for entry in filter(str.strip, text.split(";")):
        correct, _, wrong = entry.partition(":")
        correct = " ".join(correct.split())
        forms = dict.fromkeys(" ".join(form.split()) for form in wrong.split(separator))
        forms.pop(correct, None)
        if not correct or not forms or "" in forms:
            raise ValueError(f"table entry {entry.strip()!r}: expected 'correct: wrong ...'")
        if correct in table:
            raise ValueError(f"table entry {correct!r} stands twice")
        table[correct] = tuple(forms)
    return table
