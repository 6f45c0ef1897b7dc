"""Sequence-level distillation: training targets written by a teacher (papers/000 §3.2.1, §3.2.2)."""
