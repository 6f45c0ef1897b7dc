"""Makes wheels smaller for a slow connection: strips the symbols of compiled files and compresses by LZMA."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

_WORTHWHILE = 2_000_000  # bytes; smaller wheels are left as they are


def shrink(wheel: Path) -> None:
    """Replace a wheel by a smaller one, which pip installs as before."""
    if wheel.stat().st_size < _WORTHWHILE:
        return
    partial = wheel.with_name(wheel.name + ".partial")
    with (
        TemporaryDirectory() as folder,
        zipfile.ZipFile(wheel) as full,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_LZMA) as small,
    ):
        for name in full.namelist():
            path = full.extract(name, folder)
            if (name.endswith(".so") or ".so." in name) and shutil.which("strip"):
                subprocess.run(["strip", "--strip-unneeded", path], check=True)
            if not name.endswith("/"):
                small.write(path, name)
    partial.replace(wheel)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        shrink(Path(argument))
