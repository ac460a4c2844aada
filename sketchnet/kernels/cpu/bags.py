"""Rows as bags of columns: sums of a table's rows over the entries of a row, and what training makes of the table.

`numbers` are those of the rows of a batch among all, whose CSR arrays are given, offsets from 0 on.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel, prefetch

SIGMOID, SOFTMAX, IDENTITY = range(3)  # what makes expected targets of logits
_TINY = np.float32(1e-12)
_AHEAD = 16  # entries; a column's numbers are asked for so early


@kernel
def sum_bags(indptr, indices, values, numbers, table, sums, squares):
    """sums = sum of value * vector, squares = sum of (value * vector) ** 2, over the entries of each row."""
    width, last = table.shape[1], len(indices) - 1
    for b in range(len(numbers)):
        total, square = sums[b], squares[b]
        total[:] = 0
        square[:] = 0
        for t in range(indptr[numbers[b]], indptr[numbers[b] + 1]):
            prefetch(table, np.int64(indices[min(t + _AHEAD, last)]))
            value, vector = values[t], table[indices[t]]
            for j in range(width):
                part = value * vector[j]
                total[j] += part
                square[j] += part * part


@kernel
def step_vectors(indptr, indices, values, numbers, by_sum, by_pair, rate, table, rates):
    """Take Adagrad's step for the vector of each entry of a batch, one after another; one rate a vector.

    `by_sum` and `by_pair` are the loss's slopes by a row's sum and by its pairs, 1/2 (sum ** 2 - squares). `rates` has
    for each column its own learning rate, times `rate`, and the sum of its mean squared slopes so far.
    """
    width, last = table.shape[1], len(indices) - 1
    slope, share, rate = np.empty(width, np.float32), np.float32(1 / width), np.float32(rate)
    for b in range(len(numbers)):
        pull, pair = by_sum[b], by_pair[b]
        for t in range(indptr[numbers[b]], indptr[numbers[b] + 1]):
            prefetch(rates, np.int64(indices[min(t + _AHEAD, last)]))
            value, vector, own = values[t], table[indices[t]], rates[indices[t]]
            square = value * value
            for j in range(width):
                slope[j] = value * pull[j] - square * pair[j] * vector[j]
            size = np.float32(0)
            for j in range(width):
                size += slope[j] * slope[j]
            own[1] += size * share
            length = rate * own[0] / (np.sqrt(own[1]) + _TINY)
            for j in range(width):
                vector[j] -= length * slope[j]


@kernel
def measure_values(indices, values, counts, sums, squares):
    """Count the entries of each column, and add up their sizes and squared sizes."""
    for t in range(len(indices)):
        size = np.float64(abs(values[t]))
        counts[indices[t]] += 1
        sums[indices[t]] += size
        squares[indices[t]] += size * size


@kernel
def learn_weights(
    indptr, indices, values, numbers, targets, row_weights, link, weights, bias, seen, bias_seen, rate, bias_rate
):
    """Adagrad, row after row: a weight for each column and output, and a bias for each output, its slopes' squares
    summed in `seen` and `bias_seen`.
    """
    n_outputs, rate, bias_rate = weights.shape[1], np.float32(rate), np.float32(bias_rate)
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
            bias[j] -= bias_rate * logits[j] / (np.sqrt(bias_seen[j]) + _TINY)
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
def add_effects(indptr, indices, values, table, by_sum, by_pair, out):
    """out = value times slope by value, for each entry"""
    width = table.shape[1]
    for r in range(len(by_sum)):
        for t in range(indptr[r], indptr[r + 1]):
            value, vector = values[t], table[indices[t]]
            total = np.float32(0)
            for j in range(width):
                part = value * vector[j]
                total += part * by_sum[r, j] - part * part * by_pair[r, j]
            out[t] = total
