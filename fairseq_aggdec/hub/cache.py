"""Checkpoints in Hugging Face's format, imported once into the user's cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from fairseq_aggdec.errors import AggdecError
from fairseq_aggdec.hub.importing import import_checkpoint
from fairseq_aggdec.hub.settings import FILE


def imported(folder: Path) -> Path:
    """An imported folder as it is, or the import of a downloaded one, made unless one of the same files is there.

    Another process that wants it waits. Raises `AggdecError` where there is nothing that can be imported, or the cache
    cannot be written.
    """
    if not folder.is_dir():
        raise AggdecError(f"{folder}: no such folder; name one with config.json, weights and tokenizer")
    if (folder / FILE).is_file():
        return folder
    folder = folder.resolve()
    facts = [str(folder), version("fairseq-aggdec")]
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        facts += [path.name, str(path.stat().st_size), str(path.stat().st_mtime_ns)]
    key = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairseq_aggdec" / "hub"
    found = cache / f"{folder.name}-{key}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        opened = (cache / f"{found.name}.lock").open("w")
    except OSError as error:
        reason = error.strerror
        raise AggdecError(f"{cache}: cannot be written ({reason}); set XDG_CACHE_HOME to another folder") from None
    with opened as lock:
        with suppress(OSError):  # a network file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found / FILE).is_file():
            import_checkpoint(folder, found)
    return found
