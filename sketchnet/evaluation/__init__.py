"""How good a model is, and which columns its answers come from."""
