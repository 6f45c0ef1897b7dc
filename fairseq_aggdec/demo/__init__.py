"""Small trained models, and the sentences that `aggdec demo` shows them on."""
