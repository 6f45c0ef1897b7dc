"""Kernels under Triton's interpreter, for which it has to be asked before they are imported.

`tests/engine/test_triton.py` starts the process that collects these files, and another one that compiles.
"""

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]
