"""Sequence-level distillation: a teacher's translations in place of the training targets."""
