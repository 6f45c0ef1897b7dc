"""The shipped list of words is what its script makes."""

import gzip
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_script_makes_the_list_anew(tmp_path: Path, aggdec_data: Path) -> None:
    out = tmp_path / "words.txt.gz"
    shipped = ROOT / "fairseq_aggdec/demo/gec/words.txt.gz"
    command = [
        sys.executable,
        str(ROOT / "configs/shared/measuring/words.py"),
        str(out),
    ]
    subprocess.run(
        command, check=True, capture_output=True, env={"AGGDEC_DATA": str(aggdec_data)}
    )
    assert gzip.decompress(out.read_bytes()) == gzip.decompress(shipped.read_bytes())
    assert shipped.stat().st_size < 300_000
