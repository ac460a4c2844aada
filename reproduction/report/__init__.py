"""The page of a reproduction: each label beside the published numbers."""
