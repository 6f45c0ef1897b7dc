"""A teacher's data set and what has been distilled from it."""

from tests.train.distilling import distil, distilled, small_data  # noqa: F401
