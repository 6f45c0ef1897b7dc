"""`aggdec serve`: correction and translation over HTTP, in the protocols of LanguageTool and LibreTranslate."""
