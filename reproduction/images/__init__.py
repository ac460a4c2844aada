"""Residual networks with stochastic depth, and their training on small images."""
