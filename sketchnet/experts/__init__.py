"""Experts: small models on the same rows, trained apart, whose answers are blended.

So far the linear one, `linear.LinearExpert`, and `blend.fit_blend`; `rows.SeenColumns` makes the rows that they take.
"""
