"""Super-resolution of images as a task of fairseq (papers/004 §7.2): `--user-dir configs/shared/super_resolution`."""

import fairseq_aggdec

from . import task as task

fairseq_aggdec.register()
