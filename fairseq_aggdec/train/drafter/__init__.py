"""`aggdec drafter`: from a verifier and its data to a drafter that is trained and measured."""
