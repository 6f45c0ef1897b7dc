"""The papers' algorithms in plain torch: one draft-verify-accept loop and its parts. Imports torch only."""
