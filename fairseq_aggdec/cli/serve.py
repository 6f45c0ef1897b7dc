"""Serve a corrector in the protocol of LanguageTool, and a translator, if asked for, in that of LibreTranslate.

There is a page to try them. There is no authentication: it is not for the open net.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fairseq_aggdec.cli import options
from fairseq_aggdec.cli.options import option
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.text.shipped import CAREFUL

if TYPE_CHECKING:
    from fairseq_aggdec.model import Model


@dataclass(kw_only=True)
class Options:
    host: str = option("address to listen at", "127.0.0.1")
    port: int = option("0 for a free one", 8081)
    allow_host: list[str] = option("further names by which it is asked (default: those of this machine alone)", [])
    threads: int | None = option("number of PyTorch's threads", None, least=1)
    corrector: str | None = option("checkpoint (default: the shipped one, English)", None, metavar="CKPT")
    corrector_data: str | None = option("folder of its dictionaries and subword codes", None)
    corrector_tokenizer: str | None = option("as in fairseq-interactive's --tokenizer", None)
    corrector_bpe: str | None = option("as in fairseq-interactive's --bpe", None)
    corrector_languages: str | None = option("of its dictionaries (default: as trained)", None, metavar="FROM-TO")
    language: str | None = option("ISO code of its texts (default: its source language)", None)
    mode: str = option("mode that corrects", CAREFUL["mode"])
    tolerance: float | None = option("of iad++: higher keeps more of the text as it is (default for iad++: 2)", None)
    demo: bool = option("the shipped translator: a demonstration for short everyday sentences, en-de", False)
    translator: str | None = option("checkpoint (default: no translator)", None, metavar="CKPT")
    translator_data: str | None = option("folder of its dictionaries and subword codes", None)
    translator_tokenizer: str | None = option("as in fairseq-interactive's --tokenizer", None)
    translator_bpe: str | None = option("as in fairseq-interactive's --bpe", None)
    translator_languages: str | None = option("of its dictionaries (default: as trained)", None, metavar="FROM-TO")


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the server; see --help."""
    given = options.read(Options, "serve", argv, __doc__)
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise AggdecError("aggdec serve needs Starlette and uvicorn: pip install 'fairseq-aggdec[serve]'")
    if given.demo and given.translator:
        raise AggdecError("give --translator or --demo, not both")
    options.start(given.threads)
    sys.setswitchinterval(0.001)  # seconds: long texts are split beside the thread that decodes
    from fairseq_aggdec.serve.app import listen, make_app, make_server
    from fairseq_aggdec.serve.connections import known_as

    with listen(given.host, given.port) as listening:
        corrector = _loaded(given, "corrector", "gec")
        translator = _loaded(given, "translator", "mt") if given.demo or given.translator else None
        settings: dict[str, Any] = dict(CAREFUL) if given.mode == CAREFUL["mode"] else {"mode": given.mode}
        if given.tolerance is not None:
            settings["tolerance"] = given.tolerance
        corrector.decode("This is ready.", **settings)  # a wrong option is refused now, and the first request is fast
        if translator is not None:
            translator.translate("This is ready.")
        address, port = listening.getsockname()[:2]
        hosts = known_as(given.host, address, given.allow_host)
        app = make_app(corrector, translator, given.language, hosts=hosts, **settings)
        host = f"[{given.host}]" if ":" in given.host else given.host
        print(f"http://{host}:{port} (no authentication: not for the open net)", flush=True)
        if given.host not in ("127.0.0.1", "::1", "localhost"):
            print(f"warning: --host {given.host} lets in whoever can reach this machine", file=sys.stderr)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn raises it again when all is answered
        make_server(app).run(sockets=[listening])


def _loaded(given: Options, name: str, shipped: str) -> Model:
    """The model of one side: of its checkpoint, or the shipped one."""
    from fairseq_aggdec.model import load

    checkpoint = getattr(given, name)
    if checkpoint is None:
        return load.shipped(shipped)
    source, _, target = (getattr(given, f"{name}_languages") or "").partition("-")
    own = {field: getattr(given, f"{name}_{field}") for field in ("data", "tokenizer", "bpe")}
    return load(checkpoint, source_lang=source or None, target_lang=target or None, corrects=name == "corrector", **own)
