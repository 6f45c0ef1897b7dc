"""What a writer types and what a model reads: characters that the model does not know, and how they come back."""
