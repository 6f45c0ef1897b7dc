"""The kernels of `choice.py` in the sizes of base, an uneven model, big, and the largest vocabulary."""

from fairseq_aggdec.engine.cuda import choice
from tests.triton.compiling import Build

INPUTS = ("*x", "*i64", "*i64", "*i64", "fp32", "i32")
WITHOUT_DRAFT = ("*x", "*i64", "*i64", "none", "fp32", "i32")
PARTS = ("*i64", "*fp32", "*fp32", "*fp32", "i32")

BUILDS = [
    *(
        Build(
            choice.project,
            {"tensors": ("*x", "*x", bias, "*x"), "rows": "i32", "symbols": "i32"},
            {"dim": dim, "width": width},
            stages=1,
        )
        for dim, width, bias in ((512, 32, "*x"), (768, 16, "none"), (1024, 16, "none"))
    ),
    Build(choice.read_chunk, {"inputs": INPUTS, "parts": PARTS}, {"chunk": 1024, "count": 1, "alone": False}),
    *(
        Build(
            choice.read_chunk,
            {"inputs": WITHOUT_DRAFT, "parts": PARTS},
            {"chunk": chunk, "count": count, "alone": True},
            warps=chunk // 256,
        )
        for chunk, count in ((1024, 8), (4096, 32))
    ),
    *(
        Build(choice.choose, {"inputs": inputs, "parts": PARTS, "results": "*fp32"}, {"padded": 64}, warps=1)
        for inputs in (INPUTS, WITHOUT_DRAFT)
    ),
    *(
        Build(
            choice.sort_entries,
            {"parts": PARTS, "results": ("*fp32", "*i64"), "count": "i32"},
            {"padded": padded, "kept": kept},
        )
        for padded, kept in ((32, 8), (64, 32))
    ),
    Build(
        choice.embed,
        {
            "tensors": ("*i64", "*i64", "*x", "*x", "*x", "*x"),
            "scale": "fp32",
            "symbols": "i32",
            "end": "i32",
            "more": "i32",
        },
        {"dim": 512, "padded": 512},
    ),
]
