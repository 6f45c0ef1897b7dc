"""The tables that celeba_sr reproduces."""

from experiments.common_tables import image_blocks, images

OWN = {"blocks_rgb": image_blocks("table_rgb")}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [images(results, "table_rgb")]
