"""Hashes of the n-grams of strings, counted row by row.

Strings lie end to end in one buffer of UTF-8 bytes; row r is buffer[offsets[r] : offsets[r + 1]]. An n-gram is `n`
units in a row, where a unit is a byte, a character or a word, and its hash is taken over its bytes:

    state = start;   for each byte: state = (state ^ byte) * multiplier, then state ^= state >> 32;   h = mix(state)

All n-grams that begin at one unit share the state, so each costs one step and one `mix` (MurmurHash3's finaliser). The
column is floor(h * n_columns / 2**64). It rises with h: sorting hashes sorts columns.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import high_product, inlined, kernel
from sketchnet.kernels.cpu.draw import hash64
from sketchnet.kernels.cpu.threads import over_rows

_u8, _u64 = np.uint8, np.uint64
_32, _64 = _u64(32), _u64(64)
_SPACE = _u8(32)
_TAIL_MASK, _TAIL = _u8(0xC0), _u8(0x80)  # bytes 10xxxxxx continue a character

BYTES, CHARACTERS, WORDS = 0, 1, 2
NO_NORM, L1, L2 = 0, 1, 2

_FEW = 32  # as many hashes are sorted by insertion
_MOST_BUCKETS = 15  # binary logarithm; the counters then fit the second-level cache


@inlined
def _step(state, byte, multiplier):
    state = (state ^ _u64(byte)) * multiplier
    return state ^ (state >> _32)


@inlined
def _mix(state):
    return hash64(state, _u64(1), _u64(0))


@kernel
def _hash_characters(buffer, begin, end, tail_mask, low, high, multiplier, state_0, hashes):
    """With a `tail_mask` of 0 no byte continues a character: then the units are bytes."""
    m = 0
    for i in range(begin, end):
        if buffer[i] & tail_mask == _TAIL:
            continue
        state, n = state_0, 0
        for j in range(i, end):
            state = _step(state, buffer[j], multiplier)
            if j + 1 < end and buffer[j + 1] & tail_mask == _TAIL:
                continue
            n += 1
            if n >= low:
                hashes[m] = _mix(state)
                m += 1
            if n == high:
                break
    return m


@kernel
def _find_words(buffer, begin, end, is_word, words):
    """Runs of two or more word characters, as (first byte, byte after the last) in `words`; returns their number."""
    n, length, first, i = 0, 0, begin, begin
    while i <= end:
        after, inside = i + 1, False
        if i < end:
            code, tails = np.int64(buffer[i]), 0
            if code >= 0xF0:
                code, tails = code & 0x07, 3
            elif code >= 0xE0:
                code, tails = code & 0x0F, 2
            elif code >= 0xC0:
                code, tails = code & 0x1F, 1
            for j in range(i + 1, i + 1 + tails):
                code = (code << 6) | (np.int64(buffer[j]) & 0x3F)
            after += tails
            inside = is_word[code]
        if inside:
            first = i if length == 0 else first
            length += 1
        else:
            if length >= 2:
                words[n, 0], words[n, 1] = first, i
                n += 1
            length = 0
        i = after
    return n


@kernel
def _hash_words(buffer, words, n_words, low, high, multiplier, state_0, hashes):
    m = 0
    for w in range(n_words):
        state = state_0
        for v in range(w, min(w + high, n_words)):
            if v > w:
                state = _step(state, _SPACE, multiplier)
            for j in range(words[v, 0], words[v, 1]):
                state = _step(state, buffer[j], multiplier)
            if v - w + 1 >= low:
                hashes[m] = _mix(state)
                m += 1
    return m


@kernel
def _insertion_sort(a, n):
    for t in range(1, n):
        x, s = a[t], t
        while s > 0 and a[s - 1] > x:
            a[s] = a[s - 1]
            s -= 1
        a[s] = x


@kernel
def _heap_sort(a, first, last):
    """Sorts a[first:last] in n log n steps whatever it holds. (Numba's own sort takes four seconds to compile.)"""
    heap, n = a[first:last], last - first
    for t in range(n // 2 + n - 1):
        if t < n // 2:  # make the heap, from its leaves up
            node, size = n // 2 - 1 - t, n
            x = heap[node]
        else:  # then move the largest behind it, and fill its place with the last
            node, size = 0, n - 1 - (t - n // 2)
            x = heap[size]
            heap[size] = heap[0]
        while 2 * node + 1 < size:
            child = 2 * node + 1
            if child + 1 < size and heap[child + 1] > heap[child]:
                child += 1
            if heap[child] <= x:
                break
            heap[node] = heap[child]
            node = child
        heap[node] = x


@kernel
def _sort(hashes, m, spare, ends):
    """The first m hashes in ascending order: in `hashes`, or in `spare`. Returns the one that holds them.

    Hashes are uniform, so spreading them over m buckets by their highest bits all but sorts them. A bucket is large
    only where an n-gram is repeated, the row is very long or an adversary at work; it is then sorted on its own.
    """
    if m <= _FEW:
        _insertion_sort(hashes, m)
        return hashes
    bits = 0
    while bits < _MOST_BUCKETS and (1 << bits) <= m:
        bits += 1
    shift = _64 - _u64(bits)
    ends[: 1 << bits] = 0
    for t in range(m):
        ends[hashes[t] >> shift] += 1
    total, largest = 0, 0
    for b in range(1 << bits):
        size = ends[b]
        largest = max(largest, size)
        ends[b] = total
        total += size
    for t in range(m):
        b = hashes[t] >> shift
        spare[ends[b]] = hashes[t]
        ends[b] += 1
    if largest > _FEW:
        before = 0
        for b in range(1 << bits):
            if ends[b] - before > _FEW:
                _heap_sort(spare, before, ends[b])
            before = ends[b]
    _insertion_sort(spare, m)
    return spare


@kernel
def _emit(hashes, m, n_columns, counts, norm, indices, values, at):
    """Writes the columns of sorted hashes and their values from position `at` on; returns the position after them."""
    first, last = at, _u64(0)
    t = 0
    while t < m:
        last, n = high_product(hashes[t], n_columns), 1
        t += 1
        while t < m and high_product(hashes[t], n_columns) == last:
            n += 1
            t += 1
        indices[at] = last
        values[at] = n if counts else 1
        at += 1
    if norm != NO_NORM:
        length = 0.0
        for t in range(first, at):
            v = np.float64(values[t])
            length += v if norm == L1 else v * v
        length = length if norm == L1 else np.sqrt(length)
        for t in range(first, at):
            values[t] = values[t] / length
    return at


@kernel
def _rows(text, unit, is_word, low, high, key, n_columns, counts, norm, room, indices, values, lengths, start, stop):
    """Rows start to stop, written without gaps from position room[start] on; returns the position after them."""
    buffer, offsets = text
    multiplier, state_0 = key
    most, longest = 0, 0
    for r in range(start, stop):
        most = max(most, room[r + 1] - room[r])
        longest = max(longest, offsets[r + 1] - offsets[r])
    hashes, spare = np.empty(most, np.uint64), np.empty(most, np.uint64)
    ends = np.empty(1 << _MOST_BUCKETS, np.int64)
    words = np.empty(((longest + 1) // 3 if unit == WORDS else 0, 2), np.int64)
    tail_mask = _TAIL_MASK if unit == CHARACTERS else _u8(0)
    at = room[start]
    for r in range(start, stop):
        begin, end = offsets[r], offsets[r + 1]
        if unit == WORDS:
            n_words = _find_words(buffer, begin, end, is_word, words)
            m = _hash_words(buffer, words, n_words, low, high, multiplier, state_0, hashes)
        else:
            m = _hash_characters(buffer, begin, end, tail_mask, low, high, multiplier, state_0, hashes)
        before = at
        at = _emit(_sort(hashes, m, spare, ends), m, n_columns, counts, norm, indices, values, at)
        lengths[r] = at - before
    return at


@kernel
def _units(buffer, offsets, unit, lengths, start, stop):
    """At most how many units each row has."""
    tail_mask = _TAIL_MASK if unit != BYTES else _u8(0)
    for r in range(start, stop):
        n = 0
        for i in range(offsets[r], offsets[r + 1]):
            n += buffer[i] & tail_mask != _TAIL
        lengths[r] = (n + 1) // 3 if unit == WORDS else n  # two characters a word, and one between words


def hash_ngrams(text, unit, is_word, ngram_range, key, n_columns: int, counts: bool, norm: int):
    """CSR arrays (indptr, indices, values) of the n-grams in text = (buffer, offsets), ids ascending in each row.

    `is_word[c]` says whether character c belongs to a word; `key` is (odd multiplier, start) of the hash.
    """
    offsets = text[1]
    low, high = ngram_range
    indptr = np.zeros(len(offsets), np.int64)
    lengths = indptr[1:]
    over_rows(lambda a, b: _units(*text, unit, lengths, a, b), offsets)
    # Room for as many columns as there are n-grams. Pages that stay unused are never touched, hence cost nothing.
    room = np.zeros_like(indptr)
    top = np.maximum(np.minimum(lengths, high), low - 1)
    np.cumsum((top - low + 1) * (lengths + 1) - (top * (top + 1) - low * (low - 1)) // 2, out=room[1:])
    indices = np.empty(room[-1], np.int32 if n_columns < 2**31 else np.int64)
    values = np.empty(room[-1], np.float32)

    def piece(start, stop):
        common = (unit, is_word, low, high, key, _u64(n_columns), counts, norm)
        return int(room[start]), int(_rows(text, *common, room, indices, values, lengths, start, stop))

    pieces = over_rows(piece, offsets, 10 * (high - low + 1))
    total = 0
    for begin, end in pieces:  # close the gaps; in place, as memory is what the result takes most of
        indices[total : total + end - begin] = indices[begin:end]
        values[total : total + end - begin] = values[begin:end]
        total += end - begin
    indices.resize(total, refcheck=False)
    values.resize(total, refcheck=False)
    np.cumsum(lengths, out=lengths)
    return indptr, indices, values
