"""The tables that sign_digits_sr reproduces."""

from experiments.common_tables import image_blocks, images

OWN = {"blocks": image_blocks("table"), "blocks_rgb": image_blocks("table_rgb")}


def papers(results):
    """Tables of the papers with this experiment's numbers."""
    return [
        images(
            results,
            "table",
            differs="photographs of hands in grey, 4x4 to 16x16; base of 3+3 layers of 128, which is head 1; heads of "
            "their own; 4 a batch",
        )
    ]
