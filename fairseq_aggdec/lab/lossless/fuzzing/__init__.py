"""Random models, options, batches and drafts, decoded by this plugin and by fairseq, until something differs."""
