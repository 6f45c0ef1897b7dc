"""`aggdec corrupt`: (erroneous, clean) sentence pairs from clean English text, by configs/gec_small/errors."""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_aggdec.data.experiment import load_part
from fairseq_aggdec.errors import on_command_line


@on_command_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see --help.

    Raises:
        AggdecError: an option or a file cannot be used, a worker died, or the plugin is installed without its checkout.
    """
    load_part("gec_small/errors/command.py").main(argv)


if __name__ == "__main__":
    main()
