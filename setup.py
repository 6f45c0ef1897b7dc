"""Installation of fairseq_aggdec. `scripts/setup.sh` does all of it, with tested versions, in a virtual environment."""

import os
import platform
import shutil
import zlib
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
README = ROOT / "README.md"

NATIVE = Path("fairseq_aggdec/engine/native")
SOURCES = [NATIVE / name for name in ("kernels.c", "beams.c")]
# of x86 processors, by PyTorch's names; on others the engine runs PyTorch's operations
VECTORS = {
    "avx512": [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mavx2",
        "-mfma",
        "-mf16c",
    ],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
}
# "0": nothing is compiled; "fairseq": a build of fairseq, too (scripts/setup.sh --compile)
COMPILED = os.environ.get("AGGDEC_COMPILE", "kernels")
HAS_COMPILER = shutil.which((os.environ.get("CC") or "cc").split()[0]) is not None
IS_X86_LINUX = (platform.system(), platform.machine()) == ("Linux", "x86_64")
HAS_KERNELS = COMPILED != "0" and HAS_COMPILER and IS_X86_LINUX

# fairseq 0.12.2 does not import on Python >= 3.11 (mutable dataclass defaults). These are maintained builds of it, both
# imported as `fairseq`, so that only one may be installed. The second has to be compiled where it has no wheel, as for
# Python 3.11; the first has no source to compile. Markers have no "not".
FAIRSEQ = [
    've-fairseq==0.12.3; python_version == "3.11" and sys_platform == "linux" and platform_machine == "x86_64"',
    'fairseq-fixed==0.12.3.1; python_version != "3.11" or sys_platform != "linux" or platform_machine != "x86_64"',
]
if COMPILED == "fairseq":
    FAIRSEQ = ["fairseq-fixed==0.12.3.1"]


class BuildKernels(build_ext):
    """The sources for each set of vector instructions. It is loaded with ctypes, and so the same for every Python."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []


class Wheel(bdist_wheel):
    """A wheel for every Python 3, of one platform where it has kernels."""

    def get_tag(self) -> tuple[str, str, str]:
        *_, of_platform = super().get_tag()
        return "py3", "none", of_platform


def kernels(name: str) -> Extension:
    return Extension(
        f"fairseq_aggdec.engine.native.kernels_{name}",
        [str(source) for source in SOURCES],
        extra_compile_args=["-std=gnu11", "-O3", "-pthread", *VECTORS[name]],
        define_macros=[
            (
                "SOURCE",
                f"{zlib.crc32(b''.join((ROOT / source).read_bytes() for source in SOURCES))}u",
            )
        ],
        depends=["setup.py"],
        optional=True,  # without a compiler the plugin is slower, and whole
    )


setup(
    name="fairseq-aggdec",
    version="0.1.0",
    description="Lossless, several times faster decoding of sequence-to-sequence Transformers, as a fairseq plugin",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="fairseq_aggdec contributors",
    license="MIT",
    # the cards name the licences of the models' data
    license_files=["LICENSE", "fairseq_aggdec/demo/*/README.md"],
    keywords="fairseq seq2seq transformer decoding translation correction lossless speculative",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: MIT License",
        "Operating System :: POSIX",
        "Programming Language :: C",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["fairseq_aggdec", "fairseq_aggdec.*"]),
    package_data={
        "fairseq_aggdec": [
            "py.typed",
            "demo/**/*",
            "engine/native/*.c",
            "serve/page.html",
        ]
    },
    ext_modules=[kernels(name) for name in VECTORS] if HAS_KERNELS else [],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": Wheel},
    python_requires=">=3.11",  # tested: see the classifiers
    install_requires=[
        *FAIRSEQ,
        # torch.serialization.safe_globals with names: see fairseq_aggdec/compat/checkpoints.py
        "torch>=2.6",
        "numpy",
        "omegaconf",
        "sacrebleu",
        "sacremoses",
        "sentencex",
        "subword-nmt",
        "tabulate",
        "tqdm",
        "tyro",
    ],
    extras_require={
        "bench": ["ctranslate2"],
        # configs/mucgec_small makes its sentences of them
        "chinese": ["jieba", "pypinyin"],
        "dev": [
            "ctranslate2",
            "filelock",
            "hypothesis",
            "jieba",
            "language-tool-python",
            "libretranslatepy",
            "mypy",
            "pypinyin",
            "pytest",
            "pytest-xdist",
            "ruff",
            "safetensors",
            "sentencepiece",
            "starlette",
            "tokenizers",
            # the engine's kernels on a GPU
            'triton; sys_platform == "linux" and platform_machine == "x86_64"',
            "uvicorn",
        ],
        # files of Hugging Face's checkpoints
        "hub": ["safetensors", "sentencepiece", "tokenizers"],
        # what only the laboratory and the experiments import; scripts/setup.sh installs it
        "lab": [
            "cattrs",
            "matplotlib",
            "nltk",
            "pillow",
            "pooch",
            "requests",
            "rouge-score",
        ],
        "serve": ["starlette", "uvicorn"],
    },
    entry_points={
        "console_scripts": [
            "aggdec=fairseq_aggdec.cli.verbs:main",
        ]
    },
)
