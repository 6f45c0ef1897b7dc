"""CelebA (Liu et al. 2015), aligned and cropped: 202,599 photographs of faces.

The task itself cuts and reduces them.
"""

from experiments.downloads import Original, fetch
from experiments.experiment import Experiment
from experiments.steps import Steps

EXPERIMENT = Experiment(sides=("source", "target"))
IMAGES = Original(
    "celeba/originals/img_align_celeba.zip",
    ask="for research that is not commercial. Fetch it in a browser from "
    "http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (Align&Cropped Images)",
    sha256="46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
    unpack_to="celeba/img_align_celeba",
    inside="img_align_celeba",
)


def prepare(steps: Steps) -> None:
    fetch(steps.data, [IMAGES])
