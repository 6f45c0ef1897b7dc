"""The steps of the experiments' data in configs/, and their results beside the papers' tables."""
