"""Sequence-level distillation: a teacher's translations as the training targets (papers/000 §3.2.1, §3.2.2)."""
