"""Fields of tables in one-hot rows: which columns belong together, and what the values of fields meant elsewhere."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel

_RARE = 100  # a column is rare that less than one row of so many has


@kernel
def differing_columns(indices, values, first, differs):
    """differs[c] = whether column c has several values; first[c], NaN to begin with, is the first of them."""
    for t in range(len(indices)):
        c = indices[t]
        if np.isnan(first[c]):
            first[c] = values[t]
        elif values[t] != first[c]:
            differs[c] = True


@kernel
def split_ranges(indptr, places, n_places):
    """Return the first place of each range, where no row has two places of one; each is as long as it can be.

    `places` ascend within a row.
    """
    before = np.full(n_places, -1, np.int64)  # the highest place that stands before this one in some row
    for r in range(len(indptr) - 1):
        for t in range(indptr[r] + 1, indptr[r + 1]):
            before[places[t]] = max(before[places[t]], np.int64(places[t - 1]))
    starts, n = np.zeros(n_places, np.int64), 1
    for place in range(1, n_places):
        if before[place] >= starts[n - 1]:
            starts[n] = place
            n += 1
    return starts[:n]


@kernel
def colour_columns(offsets, rows, columns, taken, fields, expected):
    """Put each of `columns` into a field whose columns share no row with it; returns the number of fields, or -1 if
    more are needed than `taken` has.

    `columns` come by frequency. Where several fields will do, a frequent column goes to the fullest: least likely is it
    chance that it shares no row with that one. A rare column goes to the one with most columns: it belongs to a field
    of many rather than to one of few that merely follows from it, as the kind of a film does from its name.
    Column c has rows[offsets[c] : offsets[c + 1]]; taken[f, r] says that row r has a column of field f; expected[c] is
    the number of rows that c would share with the columns before it in its field, were they independent.
    """
    n, n_fields = taken.shape[1], 0
    sizes, widths = np.zeros(len(taken), np.int64), np.zeros(len(taken), np.int64)
    for c in columns:
        best, start, stop = -1, offsets[c], offsets[c + 1]
        scores = widths if (stop - start) * _RARE < n else sizes
        for f in range(n_fields):
            if best < 0 or scores[f] > scores[best]:
                free = True
                for t in range(start, stop):
                    if taken[f, rows[t]]:
                        free = False
                        break
                best = f if free else best
        if best < 0:
            if n_fields == len(taken):
                return -1
            best = n_fields
            n_fields += 1
        fields[c], expected[c] = best, (stop - start) * (sizes[best] / n)
        sizes[best] += stop - start
        widths[best] += 1
        for t in range(start, stop):
            taken[best, rows[t]] = True
    return n_fields


@kernel
def read_fields(indptr, indices, fields, start, stop, out):
    """out[f, r] = one more than the first column of field f that row r has; 0 where it has none."""
    for r in range(start, stop):
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            field = fields[indices[t]]
            if field >= 0 and out[field, r] == 0:
                out[field, r] = indices[t] + 1


@kernel
def read_numbers(indptr, indices, values, places, start, stop, out):
    """Add the value of column c to out[r, places[c]], unless that place is negative."""
    for r in range(start, stop):
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            place = places[indices[t]]
            if place >= 0:
                out[r, place] += values[t]


@kernel
def sum_other_folds(codes, folds, n_folds, weights, targets, totals, out_weights, out_sums):
    """out_weights[r], out_sums[r]: weights, and weights times targets, of the rows in other folds whose code is that of
    row r. `totals` (codes x (1 + outputs)), zero to begin with, gets those of all rows.
    """
    width = targets.shape[1]
    inside = np.zeros((len(totals), n_folds, 1 + width))
    for r in range(len(codes)):
        own = inside[codes[r], folds[r]]
        own[0] += weights[r]
        for k in range(width):
            own[1 + k] += weights[r] * targets[r, k]
    for c in range(len(totals)):
        for f in range(n_folds):
            for k in range(1 + width):
                totals[c, k] += inside[c, f, k]
    for r in range(len(codes)):
        total, own = totals[codes[r]], inside[codes[r], folds[r]]
        out_weights[r] = max(0.0, total[0] - own[0])
        for k in range(width):
            out_sums[r, k] = total[1 + k] - own[1 + k]
