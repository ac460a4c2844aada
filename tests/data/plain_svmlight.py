"""svmlight text parsed line by line, as plainly as can be: what the fast parser is compared with."""

import re

import numpy as np

from sketchnet.data.csr import CsrBatch

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
FIELDS = ("indptr", "indices", "values", "labels", "label_indptr", "groups")


class Malformed(Exception):
    """Raised by the plain parser."""


def plain_number(text: bytes, dtype=np.float64) -> float:
    if not NUMBER.fullmatch(text):
        raise Malformed(f"number {text[:40]!r}")
    with np.errstate(over="ignore"):
        value = np.float64(float(text)).astype(dtype)
    if not np.isfinite(value):
        raise Malformed("overflow")
    return value


def plain_whole(text: bytes) -> int:
    if not re.fullmatch(rb"[0-9]+", text) or len(text.lstrip(b"0")) > 19 or int(text.lstrip(b"0") or b"0") >= 2**63:
        raise Malformed(f"whole number {text[:40]!r}")
    return int(text.lstrip(b"0") or b"0")


# Whatever stands in place of a label, if neither an entry nor a query id does.
ANY_LABEL = re.compile(rb"[ \t]*(?!qid:|[0-9+,.-]*:)([0-9+,.-]+(?=[ \t\r#]|\Z)|[^ \t\r#][^ \t\r]*)")


def parse_line_plainly(line: bytes, dtype, ignore=False):
    """(labels, query id or None, ids as written, values) of a line without its newline, or None if it is no row."""
    if ignore and (label := ANY_LABEL.match(line)):
        line = b"0" + line[label.end() :]
    line = line.removesuffix(b"\r") if b"#" not in line else line.split(b"#", 1)[0]
    if re.search(rb"[^!-~ \t]", line):
        raise Malformed("byte")
    fields = line.split()
    if not fields:
        return None
    labels = [] if b":" in fields[0] else [plain_number(label) for label in fields.pop(0).split(b",")]
    group = None
    if fields and fields[0].startswith(b"qid:"):
        sign, digits = re.fullmatch(rb"([+-]?)(.*)", fields.pop(0)[4:]).groups()
        group = -plain_whole(digits) if sign == b"-" else plain_whole(digits)
    ids, values = [], []
    for field in fields:
        if b":" not in field:
            raise Malformed("no colon")
        column, value = field.split(b":", 1)
        ids.append(plain_whole(column))
        values.append(plain_number(value, dtype))
    return [] if ignore else labels, group, ids, values


def parse_plainly(text: bytes, dtype=np.float32, *, skip=False, base="auto", labels="auto"):
    """(batch, lines skipped) of a whole file; Malformed carries the line number."""
    rows, skipped, unlabelled = [], 0, []
    text = text.removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), 1):
        try:
            row = parse_line_plainly(line, dtype, labels == "ignore")
            if row is None:
                continue
            if rows and (row[1] is None) != (rows[0][1] is None):
                raise Malformed("some rows have query ids")
            if (base == 1 and 0 in row[2]) or (labels == "single" and len(row[0]) != 1):
                raise Malformed("id 0 or labels")
            rows.append(row)
            unlabelled += [] if row[0] else [number]
        except Malformed as error:
            if not skip:
                raise Malformed(number, *error.args) from None
            skipped += 1
    if base == "auto":
        base = 0 if any(0 in row[2] for row in rows) else 1
    if labels == "auto" and {len(row[0]) for row in rows} == {0, 1}:  # bad lines are skipped, this is not
        raise Malformed(unlabelled[0], "some rows have a label")
    several = labels == "multi" or (labels == "auto" and any(len(row[0]) != 1 for row in rows))
    ids = np.array([i - base for row in rows for i in row[2]], np.int64)
    return CsrBatch(
        np.cumsum([0] + [len(row[2]) for row in rows]),
        ids,
        np.array([v for row in rows for v in row[3]], dtype),
        int(ids.max()) + 1 if len(ids) else 0,
        None if labels == "ignore" else np.array([label for row in rows for label in row[0]], np.float64),
        np.cumsum([0] + [len(row[0]) for row in rows]) if several else None,
        np.array([row[1] for row in rows], np.int64) if rows and rows[0][1] is not None else None,
    ), skipped


def assert_same(a: CsrBatch, b: CsrBatch) -> None:
    assert a.n_columns == b.n_columns
    for name in FIELDS:
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None), name
        if x is not None and name == "indices":  # as wide as they must be
            assert x.astype(np.int64).tolist() == y.astype(np.int64).tolist()
        elif x is not None:
            assert x.dtype == y.dtype, name
            assert x.tobytes() == y.tobytes(), name  # bits, so that -0.0 is not 0.0


def joined(chunks: list[CsrBatch]) -> CsrBatch:
    def offsets(name):
        if getattr(chunks[0], name) is None:
            return None
        return np.cumsum(np.concatenate([[0]] + [np.diff(getattr(chunk, name)) for chunk in chunks]))

    def line(name):
        return None if getattr(chunks[0], name) is None else np.concatenate([getattr(c, name) for c in chunks])

    parts = offsets("indptr"), line("indices"), line("values"), chunks[-1].n_columns
    return CsrBatch(*parts, line("labels"), offsets("label_indptr"), line("groups"))
