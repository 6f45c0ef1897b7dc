"""Wheels for a narrow way: compiled files without their symbols, packed as tightly as zip files can be."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

_WORTHWHILE = 2_000_000  # bytes; smaller ones are left alone


def shrink(wheel: Path) -> None:
    """Write a wheel anew; pip installs it as before."""
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
