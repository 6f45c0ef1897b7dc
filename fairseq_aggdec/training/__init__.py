"""How a drafter is trained: which blocks it sees and what glancing reveals. Plain torch, no fairseq."""
