"""Rows as bags of columns: sums of a table's rows over the entries of a row, and what training makes of the table.

`numbers` are those of the rows of a batch among all; `first`, `ids` and `values` are the CSR arrays of all, offsets from 0
on. Loops over a table's width have no sums in them, so that they vectorise without fast-math.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel

SIGMOID, SOFTMAX, IDENTITY = range(3)  # what makes expected targets of logits
_TINY = np.float32(1e-12)


@kernel
def sum_bags(indptr, indices, values, numbers, table, scales, sums, squares, start, stop):
    """sums = sum of value * vector, squares = sum of (value * vector) ** 2, over the entries of each row."""
    width = table.shape[1]
    for b in range(start, stop):
        total, square = sums[b], squares[b]
        total[:] = 0
        square[:] = 0
        for t in range(indptr[numbers[b]], indptr[numbers[b] + 1]):
            column = indices[t]
            value, vector = values[t] * scales[column], table[column]
            for j in range(width):
                part = value * vector[j]
                total[j] += part
                square[j] += part * part


@kernel
def collect_slopes(indptr, indices, values, numbers, table, scales, by_sum, by_pair, slots, columns, slopes):
    """Add up the slope of each vector that a batch touches; returns how many, whose numbers are then in `columns`.

    `by_sum` and `by_pair` are the loss's slopes by a row's sum and by its pairs, 1/2 (sum ** 2 - squares). `slots`, 0
    for all columns between batches, says where a column's slope lies, counting from 1.
    """
    width, n = table.shape[1], 0
    for b in range(len(numbers)):
        pull, pair = by_sum[b], by_pair[b]
        for t in range(indptr[numbers[b]], indptr[numbers[b] + 1]):
            column = indices[t]
            value, slot = values[t] * scales[column], slots[column]
            if slot == 0:
                columns[n] = column
                slopes[n] = 0
                n += 1
                slot = slots[column] = n
            vector, slope, square = table[column], slopes[slot - 1], value * value
            for j in range(width):
                slope[j] += value * pull[j] - square * pair[j] * vector[j]
    for s in range(n):
        slots[columns[s]] = 0
    return n


@kernel
def step_adam(columns, n, slopes, table, momentum, seen, rate):
    """Adam's step for the vectors of a batch, its second moment one number a vector; others stay as they are.

    `seen` has for each column that second moment and the number of its steps.
    """
    width = table.shape[1]
    for s in range(n):
        column, slope = columns[s], slopes[s]
        size = np.float32(0)
        for j in range(width):
            size += slope[j] * slope[j]
        seen[column, 0] = np.float32(0.999) * seen[column, 0] + np.float32(0.001) * size / np.float32(width)
        seen[column, 1] += 1
        steps = np.float64(seen[column, 1])
        root = np.sqrt(np.float64(seen[column, 0]) / (1 - 0.999**steps)) + 1e-8
        length = np.float32(rate / (root * (1 - 0.9**steps)))
        vector, moment = table[column], momentum[column]
        for j in range(width):
            moment[j] = np.float32(0.9) * moment[j] + np.float32(0.1) * slope[j]
            vector[j] -= length * moment[j]


@kernel
def step_adagrad(columns, n, slopes, table, seen, rate):
    """Adagrad's step for the vectors of a batch, one rate a vector; `seen` is the sum of their mean squared slopes."""
    width = table.shape[1]
    for s in range(n):
        column, slope = columns[s], slopes[s]
        size = np.float32(0)
        for j in range(width):
            size += slope[j] * slope[j]
        seen[column, 0] += size / np.float32(width)
        length = np.float32(rate) / (np.sqrt(seen[column, 0]) + _TINY)
        vector = table[column]
        for j in range(width):
            vector[j] -= length * slope[j]


@kernel
def learn_weights(indptr, indices, values, numbers, targets, row_weights, link, weights, bias, seen, bias_seen, rate):
    """Adagrad, row after row: a weight for each column and output, and a bias for each output, its slopes' squares
    summed in `seen` and `bias_seen`.
    """
    n_outputs, rate = weights.shape[1], np.float32(rate)
    logits = np.empty(n_outputs, np.float32)
    for b in range(len(numbers)):
        begin, end = indptr[numbers[b]], indptr[numbers[b] + 1]
        logits[:] = bias
        for t in range(begin, end):
            value, row = values[t], weights[indices[t]]
            for j in range(n_outputs):
                logits[j] += value * row[j]
        if link == SOFTMAX:
            logits[:] = np.exp(logits - logits.max())
            logits /= logits.sum()
        elif link == SIGMOID:
            logits[:] = 1 / (1 + np.exp(-logits))
        for j in range(n_outputs):
            logits[j] = row_weights[b] * (logits[j] - targets[b, j])
            bias_seen[j] += logits[j] * logits[j]
            bias[j] -= rate * logits[j] / (np.sqrt(bias_seen[j]) + _TINY)
        for t in range(begin, end):
            value, row, squares = values[t], weights[indices[t]], seen[indices[t]]
            for j in range(n_outputs):
                slope = value * logits[j]
                squares[j] += slope * slope
                row[j] -= rate * slope / (np.sqrt(squares[j]) + _TINY)


@kernel
def fill_rows(indptr, indices, values, numbers, centres, scales, out):
    """out = dense rows, each column less its centre and times its scale; columns beyond the centres are left out."""
    n_columns = len(centres)
    for b in range(len(numbers)):
        row = out[b]
        for j in range(n_columns):
            row[j] = -centres[j] * scales[j]
        for t in range(indptr[numbers[b]], indptr[numbers[b] + 1]):
            column = np.int64(indices[t])
            if column < n_columns:
                row[column] += values[t] * scales[column]


@kernel
def add_effects(indptr, indices, values, table, scales, by_sum, by_pair, out):
    """out = value times slope by value, for each entry"""
    width = table.shape[1]
    for r in range(len(by_sum)):
        for t in range(indptr[r], indptr[r + 1]):
            column = indices[t]
            value, vector = values[t] * scales[column], table[column]
            total = np.float32(0)
            for j in range(width):
                part = value * vector[j]
                total += part * by_sum[r, j] - part * part * by_pair[r, j]
            out[t] = total
