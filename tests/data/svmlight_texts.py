"""svmlight text: one of everything, mistakes and what is said to them, and enough of it for several threads."""

import numpy as np

EXAMPLE = (
    b"# a comment: 1:2, with \xff bytes\r\n"
    b"+1 1:0.5 3:-2\t7:1e-3   # more: 1,2\n"
    b"\n \t \r\n"
    b"-1.5 9:.5 2:5. 2:+7#x\r\n"
    b"3\n"
    b"\t4e2 12345678:123456789.25 123456789012:0.1234567890123456789\n"
    b"5 1:1"
)

ERRORS = [
    (b"1 1:1\nx 1:1", "2:1: label 'x' is not a finite decimal number"),
    (b"1 1:1\n\n1 2:3 4:5,6 7:8", "3:9: value '5,6' is not a finite decimal number"),
    (b"1 1:nan", "1:5: value 'nan'"),
    (b"inf 1:1", "1:1: label 'inf'"),
    (b"1 1:1e400", "1:5: number '1e400' is too large"),
    (b"1 1:1_0", "1:5: value '1_0'"),
    (b"1 1:0x10", "1:5: value '0x10'"),
    (b"1 1:", "1:5: value ''"),
    (b"1 :1", "1:3: id '' is not a whole number"),
    (b"1 7", "1:3: '7' has no colon; allowed is id:value"),
    (b"1 -7:1", "1:3: id '-7' is not a whole number"),
    (b"1 1.5:1", "1:3: id '1.5' is not"),
    (b"1 9223372036854775808:1", "1:3: id '9223372036854775808' is too large"),
    (b"1 1:1:1", "1:5: value '1:1'"),
    (b"1, 1:1", "1:3: label ''"),
    (b"1 1:1\r 2:2\n", "1:6: carriage return inside a line"),
    (b"1 1:2\xc2\xb2 3:3", "1:6: byte 0xc2 is not allowed outside comments"),
    (b"1 1:1\x002:2", "1:6: byte 0x00"),
    (b"1\x0b1:1", "1:2: byte 0x0b"),
    (b"1 qid:x 1:1", "1:3: 'qid:x' is no query id"),
    (b"1 1:1 qid:3", "1:7: the query id must stand once, right after the label"),
    (b"1 qid:1 1:1\n1 1:1", "2:1: the line has no query id"),
    (b"1 1:1\n1 qid:1 1:1", "2:1: the line has a query id"),
]


def big_text(n_rows=4000, seed=0):
    """Rows, comments, blanks and hard numbers, enough for several threads."""
    rng = np.random.default_rng(seed)
    lines = []
    for r in range(n_rows):
        ids = rng.integers(1, 10**6, rng.integers(0, 30)).tolist()
        line = f"{r}" + "".join(f" {i}:{v:.6g}" for i, v in zip(ids, rng.standard_normal(len(ids)).tolist()))
        line += [" # 1:2,3", "", "\r", " 5:1e-320", " 7:0.1234567890123456789012345"][r % 5]
        lines.append(line + "\n\n" * (r % 7 == 0) + "\n# comment: 1,2\n" * (r % 11 == 0) + "\n")
    return "".join(lines).encode()
