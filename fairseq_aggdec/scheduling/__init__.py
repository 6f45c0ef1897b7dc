"""Schedules that decide how much to draft and to verify (not in the papers)."""
