"""BART (Lewis et al. 2020) as fairseq publishes it, with its subwords (GPT-2's) and dictionary.

https://github.com/facebookresearch/fairseq/tree/main/examples/bart
"""

from experiments.downloads import Original

_PUBLIC = "https://dl.fbaipublicfiles.com/fairseq"
SUBWORDS = [
    Original(f"bart/{name}", f"{_PUBLIC}/gpt2_bpe/{name}")
    for name in ("encoder.json", "vocab.bpe")
]


def model(name: str) -> Original:
    """A model, such as `bart.base`: `model.pt` and `dict.txt` in `bart/NAME`."""
    return Original(
        f"bart/originals/{name}.tar.gz",
        f"{_PUBLIC}/models/{name}.tar.gz",
        unpack_to=f"bart/{name}",
        inside=name,
        members=(f"{name}/model.pt", f"{name}/dict.txt"),
    )
