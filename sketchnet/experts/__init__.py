"""Experts: small models on the same rows, trained apart, whose answers are blended. This is the default.

`linear` is solved exactly, `weights` is a linear model stopped early, `vectors` (of columns) hears their
interactions, `columns` adds up what columns have meant in other rows, `trees` are boosted over what the values of a
table's fields have meant, `dense` is a small network on dense rows, `sketch` one behind a learnt projection. All
follow the contract in `expert.py`. `fit.py` reads from top to bottom how they become a `model.BlendedModel`: rows get
numbered columns (`rows.py`), some are held back (`splits.py`), experts learn side by side, `choice.py` says which to
take, and `blend.py` how much of each.
"""
