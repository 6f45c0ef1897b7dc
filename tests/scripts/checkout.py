"""Running the stage scripts, in the repository or in a copy with experiments that a test may change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AWKWARD = '-it\'s a "folder"\nof mine'
"""What a folder may be called."""


def checkout_with(experiment: str, folder: Path) -> Path:
    """A new root in `folder`: everything is a link to the repository but the folder of one experiment, a copy."""
    root = folder / AWKWARD
    (root / "configs").mkdir(parents=True)
    for name in ("fairseq_aggdec", "scripts"):
        (root / name).symlink_to(ROOT / name)
    for path in (ROOT / "configs").iterdir():
        if path.name == experiment:
            shutil.copytree(path, root / "configs" / experiment)
        else:
            (root / "configs" / path.name).symlink_to(path)
    return root


def run(stage: str, *arguments: str, **where: Path) -> subprocess.CompletedProcess[str]:
    """Runs one script and returns its output; a failure shows it. `where`: see `run_whatever_comes`."""
    done = run_whatever_comes(stage, *arguments, **where)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def run_whatever_comes(
    stage: str,
    *arguments: str,
    data: Path,
    work: Path,
    root: Path = ROOT,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """`run` of a script that may fail."""
    settings = {
        "AGGDEC_DATA": str(data),
        "AGGDEC_WORK": str(work),
        "AGGDEC_VENV": sys.prefix,
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        ["bash", str(root / "scripts" / f"{stage}.sh"), *arguments],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=1200,
    )
