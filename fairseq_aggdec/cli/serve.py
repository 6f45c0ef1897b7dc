"""`aggdec serve`: correction and translation over HTTP, and a page to try them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from fairseq_aggdec.cli import options
from fairseq_aggdec.errors import AggdecError, on_command_line
from fairseq_aggdec.text.shipped import CAREFUL


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the server; see --help."""
    parser = argparse.ArgumentParser(
        prog="aggdec serve",
        description="Serve a corrector in the protocol of LanguageTool and a translator in that of LibreTranslate, "
        "with a page to try the corrector. There is no authentication: it is not for the open net.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8081, help="0 for a free one (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="number of PyTorch's threads")
    for name, shipped in (("corrector", "English"), ("translator", "English to German")):
        group = parser.add_argument_group(name)
        group.add_argument(f"--{name}", metavar="CKPT", help=f"checkpoint (default: the shipped one, {shipped})")
        group.add_argument(f"--{name}-data", metavar="FOLDER", help="folder of its dictionaries and subword codes")
        group.add_argument(f"--{name}-tokenizer", metavar="NAME", help="as in fairseq-interactive's --tokenizer")
        group.add_argument(f"--{name}-bpe", metavar="NAME", help="as in fairseq-interactive's --bpe")
        group.add_argument(f"--{name}-languages", metavar="FROM-TO", help="of its dictionaries (default: as trained)")
        if name == "corrector":
            group.add_argument("--language", metavar="CODE", help="of its texts (default: its source language)")
            group.add_argument("--mode", default=CAREFUL["mode"], help="mode that corrects (default: %(default)s)")
            group.add_argument(
                "--tolerance",
                type=float,
                help="of iad++: higher keeps more of the text as it is (default for iad++: 2)",
            )
    args = parser.parse_args(argv)
    options.check_least(parser, args, 1, "threads")
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise AggdecError("aggdec serve needs Starlette and uvicorn: pip install 'fairseq-aggdec[serve]'")
    options.start(args.threads)
    from fairseq_aggdec.serve.app import listen, make_app, make_server
    from fairseq_aggdec.text.model import load

    with listen(args.host, args.port) as listening:
        models = []
        for name, shipped in (("corrector", "gec"), ("translator", "mt")):
            fields = (name, *(f"{name}_{field}" for field in ("data", "tokenizer", "bpe", "languages")))
            checkpoint, data, tokenizer, bpe, languages = (getattr(args, field) for field in fields)
            if checkpoint is None:
                models.append(load.shipped(shipped))
            else:
                source, _, target = (languages or "").partition("-")
                models.append(
                    load(
                        checkpoint,
                        data,
                        source_lang=source or None,
                        target_lang=target or None,
                        tokenizer=tokenizer,
                        bpe=bpe,
                        corrects=name == "corrector",
                    )
                )
        corrector, translator = models
        settings = dict(CAREFUL) if args.mode == CAREFUL["mode"] else {"mode": args.mode}
        if args.tolerance is not None:
            settings["tolerance"] = args.tolerance
        corrector.decode("This is ready.", **settings)  # a wrong option is refused now, and the first request is fast
        translator.decode("This is ready.")
        app = make_app(corrector, translator, args.language, **settings)
        host = f"[{args.host}]" if ":" in args.host else args.host
        print(f"http://{host}:{listening.getsockname()[1]} (no authentication: not for the open net)", flush=True)
        if args.host not in ("127.0.0.1", "::1", "localhost"):
            print(f"warning: --host {args.host} lets in whoever can reach this machine", file=sys.stderr)
        make_server(app).run(sockets=[listening])


if __name__ == "__main__":
    main()
