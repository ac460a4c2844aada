"""What columns have meant in other rows: sums by column, mark and fold, and the weights that are made of them.

A row has marks: its class, its labels, or its number. A cell holds what the rows of one mark and one fold have in one
column: a sum for each knot, to which a value belongs by how near it is (piecewise-linear). The cells of a column lie
together, marks ascending and folds within them: memory follows the entries, not columns x marks x folds.

Weights come in groups, one weight a knot. A column has a group for each output whose mark it has occurred with, from
starts[column] on, outputs ascending. If there are several outputs, a group for all the others comes first.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel
from sketchnet.kernels.cpu.threads import over_range, over_rows

_PSEUDO = np.float32(0.5)  # rows, shared out among the outputs as all rows are, that are added where a ratio is taken
_WORK = 64  # of an entry, or of a cell, in the steps that threads.py counts


@inlined
def _place(knots, value):
    """The knot at or below a value, and the share of the next one; beyond the ends values are as at the ends."""
    k, last = 0, len(knots) - 1
    share = np.float32(0)
    if last > 0:
        while k < last - 1 and value >= knots[k + 1]:
            k += 1
        share = np.float32((value - knots[k]) / (knots[k + 1] - knots[k]))
        share = min(max(share, np.float32(0)), np.float32(1))
    return k, share


@kernel
def count_cells(indptr, indices, rows, keys, counts):
    """counts[c] = number of cells of column c; keys ascend: mark * folds + fold of `rows`, in which one may repeat."""
    last = np.full(len(counts), -1, np.int64)
    for i in range(len(rows)):
        for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
            c = indices[t]
            if last[c] != keys[i]:
                last[c] = keys[i]
                counts[c] += 1


@kernel
def fill_cells(indptr, indices, values, rows, keys, row_weights, knots, ends, cell_keys, sums):
    """Add the entries up in the cells, which begin with zeros; ends[c] is the place after the last one of column c."""
    free = np.empty(len(ends), np.int64)
    free[0] = 0
    free[1:] = ends[:-1]
    last = np.full(len(ends), -1, np.int64)
    for i in range(len(rows)):
        for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
            c = indices[t]
            if last[c] != keys[i]:
                last[c] = keys[i]
                cell_keys[free[c]] = keys[i]
                free[c] += 1
            cell = free[c] - 1
            k, share = _place(knots, values[t])
            sums[cell, k] += row_weights[i] * (1 - share)
            if share > 0:
                sums[cell, k + 1] += row_weights[i] * share


@kernel
def _number(indices, numbers, columns, out):
    n = 0
    for t in range(len(indices)):
        c = indices[t]
        if numbers[c] < 0:
            numbers[c] = n
            columns[n] = c
            n += 1
        out[t] = numbers[c]
    for i in range(n):
        numbers[columns[i]] = -1
    return n


def number_columns(indices, numbers):
    """Return (the columns that occur, for each entry the place of its column among them); `numbers`, one a column of
    all, are -1 before and after.
    """
    columns, out = np.empty(min(len(indices), len(numbers)), np.int64), np.empty(len(indices), np.int32)
    return columns[: _number(indices, numbers, columns, out)], out


@kernel
def count_groups(columns, offsets, cell_keys, n_folds, without, n_outputs, counts):
    """counts[i] = number of groups of weights of columns[i] if the fold `without` is left out."""
    for i in range(len(columns)):
        counts[i] = 1
        last = -1
        if n_outputs > 1:
            for cell in range(offsets[columns[i]], offsets[columns[i] + 1]):
                mark = cell_keys[cell] // n_folds
                if mark != last and mark < n_outputs and cell_keys[cell] % n_folds != without:
                    last = mark
                    counts[i] += 1


@inlined
def _write_class(mine, whole, prior, out, place):
    mine, whole = max(mine, np.float32(0)), max(whole, np.float32(0))
    out[place] = mine + 1
    out[place + 1] = max(whole - mine, np.float32(0)) + 1
    out[place + 2] = (mine / prior + _PSEUDO) / (whole + _PSEUDO)


@inlined
def _write_number(mine, whole, out, place):
    whole = max(whole, np.float32(0)) + 1
    out[place] = whole
    out[place + len(out) // 2] = mine / whole


@inlined
def _write(own, total, is_number, prior, out):
    n = len(own)
    all_own = all_total = np.float32(0)
    for k in range(n):
        all_own += own[k]
        all_total += total[k]
        if is_number:
            _write_number(own[k], total[k], out, k)
        else:
            _write_class(own[k], total[k], prior, out, 3 * k)
    if n > 1 and is_number:
        _write_number(all_own, all_total, out, n)
    elif n > 1:
        _write_class(all_own, all_total, prior, out, 3 * n)


@kernel
def _describe(columns, offsets, cell_keys, sums, n_folds, without, n_outputs, from_total, is_number, priors, scale,
              starts, outputs, out, start, stop):  # fmt: skip
    n_knots = sums.shape[1]
    own, total = np.empty(n_knots, np.float32), np.empty(n_knots, np.float32)
    for i in range(start, stop):
        begin, end = offsets[columns[i]], offsets[columns[i] + 1]
        total[:] = 0
        for cell in range(begin, end):
            if cell_keys[cell] // n_folds >= from_total and cell_keys[cell] % n_folds != without:
                for k in range(n_knots):
                    total[k] += scale * sums[cell, k]
        own[:] = 0
        group, cell = starts[i], begin
        if n_outputs > 1:
            outputs[group] = -1
            _write(own, total, is_number, np.float32(1), out[group])
            group += 1
        while group < starts[i + 1]:
            own[:] = 0
            mark = -1
            while cell < end:
                key = cell_keys[cell]
                if key // n_folds >= n_outputs or (mark >= 0 and key // n_folds != mark):
                    break
                if key % n_folds != without:
                    mark = key // n_folds
                    for k in range(n_knots):
                        own[k] += scale * sums[cell, k]
                cell += 1
            outputs[group] = max(mark, 0)
            _write(own, total, is_number, priors[max(mark, 0)], out[group])
            group += 1


def describe_columns(
    columns, offsets, cell_keys, sums, n_folds, without, n_outputs, from_total, is_number, priors, scale
):
    """Return (starts, outputs, descriptions) of the groups of weights of some columns.

    Marks below `n_outputs` are those of the outputs; those from `from_total` on make up the total, against which they
    are set. `priors` are the outputs' shares of all rows. The fold `without` is left out, if it is not -1. Sums are
    multiplied by `scale`.
    """
    counts = np.zeros(len(columns) + 1, np.int64)
    count_groups(columns, offsets, cell_keys, n_folds, without, n_outputs, counts[1:])
    starts = counts.cumsum()
    n_knots = sums.shape[1]
    width = (2 if is_number else 3) * (n_knots + (n_knots > 1))
    outputs, out = np.empty(starts[-1], np.int32), np.empty((starts[-1], width), np.float32)
    rest = (n_folds, without, n_outputs, from_total, is_number, priors, np.float32(scale), starts, outputs, out)
    over_range(lambda a, b: _describe(columns, offsets, cell_keys, sums, *rest, a, b), len(columns), _WORK * len(out))
    logged = out[:, : width // 2] if is_number else out
    np.log(logged, out=logged)
    return starts, outputs, out


@kernel
def _add_up(indptr, columns, values, starts, outputs, weights, knots, out, start, stop):
    several, wide = out.shape[1] > 1, len(knots) > 1
    for i in range(start, stop):
        base = np.float32(0)
        for t in range(indptr[i], indptr[i + 1]):
            k, share = _place(knots, values[t])
            first, shared = starts[columns[t]], np.float32(0)
            if several:
                shared = weights[first, k]
                if wide:
                    shared += share * (weights[first, k + 1] - shared)
                base += shared
                first += 1
            for group in range(first, starts[columns[t] + 1]):
                weight = weights[group, k]
                if wide:
                    weight += share * (weights[group, k + 1] - weight)
                out[i, outputs[group]] += weight - shared
        for j in range(out.shape[1]):
            out[i, j] += base


def add_up(indptr, columns, values, starts, outputs, weights, knots, n_outputs):
    """Return the sum of the weights of each row's entries, by output. Offsets begin with 0."""
    out = np.zeros((len(indptr) - 1, n_outputs), np.float32)
    rest = (starts, outputs, weights, knots, out)
    over_rows(lambda a, b: _add_up(indptr, columns, values, *rest, a, b), indptr, _WORK)
    return out


@kernel
def slopes_of_weights(indptr, columns, values, starts, outputs, knots, slopes, out):
    """Add to `out` the slope by each weight, given those by what `add_up` returns."""
    several, wide = slopes.shape[1] > 1, len(knots) > 1
    for i in range(len(slopes)):
        whole = np.float32(0)
        for j in range(slopes.shape[1]):
            whole += slopes[i, j]
        for t in range(indptr[i], indptr[i + 1]):
            k, share = _place(knots, values[t])
            first, left = starts[columns[t]], whole
            for group in range(first + several, starts[columns[t] + 1]):
                slope = slopes[i, outputs[group]]
                left -= slope
                out[group, k] += (1 - share) * slope
                if wide:
                    out[group, k + 1] += share * slope
            if several:
                out[first, k] += (1 - share) * left
                if wide:
                    out[first, k + 1] += share * left


@kernel
def _entry_weights(indptr, columns, values, chosen, starts, outputs, weights, knots, several, out, start, stop):
    for i in range(start, stop):
        for t in range(indptr[i], indptr[i + 1]):
            group = starts[columns[t]]
            if several:
                for other in range(group + 1, starts[columns[t] + 1]):
                    if outputs[other] == chosen[i]:
                        group = other
            k, share = _place(knots, values[t])
            out[t] = weights[group, k]
            if share > 0:
                out[t] += share * (weights[group, k + 1] - weights[group, k])


def entry_weights(indptr, columns, values, chosen, starts, outputs, weights, knots, several):
    """Return what each entry adds to the sum of the output that is chosen for its row."""
    out = np.empty(len(columns), np.float32)
    rest = (chosen, starts, outputs, weights, knots, several, out)
    over_rows(lambda a, b: _entry_weights(indptr, columns, values, *rest, a, b), indptr, _WORK)
    return out
