"""The dissertation's tables and figures, measured with sketchnet: run `python -m reproduction` from a clone."""
