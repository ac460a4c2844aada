"""Attacks on the command line from outside: damaged files, hostile names, kills, full disks, foreign files.

`attack.py` says what an attack is and `judge.py` what counts as wrong; each `on_*.py` has attacks of one kind. An
attack is a function of a `Scene`: it puts files into `scene.here`, drawn from `scene.rng`, and calls `scene.run`.
"""
