"""CSV files of every make to chunks of a table."""

import bz2
import csv
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sketchnet.data import csv_files
from sketchnet.data.compression import Limits
from sketchnet.data.csv_files import csv_chunks, fit_csv, read_csv_batches
from sketchnet.data.table_chunks import is_number
from sketchnet.data.tables import MISSING, TableEncoder
from sketchnet.errors import InputError
from tests.data.plain_tables import TABLE, joined, oracle, plain_hash, rows_of, same, write

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=6)
CELL = TEXT | st.sampled_from(
    ["", "0", "-0.0", "1", "2.5", "1e-60", "nan", "NA", "1_0", "a,b", 'q"', "x\ny", "x\r\ny", "\r"]
)
NUMBER = st.sampled_from(["", "NaN", "0", "1", "-2.5", "1e-60", " 3 ", "1e10"])


@st.composite
def csv_tables(draw):
    names = draw(st.lists(TEXT.filter(lambda name: not is_number(name)), min_size=2, max_size=4, unique=True))
    columns = [draw(st.sampled_from([CELL, NUMBER])) for _ in names]
    return names, draw(st.lists(st.tuples(*columns), min_size=1, max_size=12))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=csv_tables(),
    delimiter=st.sampled_from(",\t;|"),
    quoting=st.sampled_from([("\r\n", csv.QUOTE_MINIMAL), ("\n", csv.QUOTE_ALL), ("\r", csv.QUOTE_ALL)]),
    chunk_rows=st.integers(1, 13),
    hashed=st.booleans(),
    bom=st.booleans(),
)
def test_csv_round_trip(table, delimiter, quoting, chunk_rows, hashed, bom, tmp_path):
    names, rows = table
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=quoting[0], quoting=quoting[1]).writerows([names, *rows])
    path = write(tmp_path, ("\ufeff" if bom else "").encode() + text.getvalue().encode())
    encoder = TableEncoder(n_columns=10**6 if hashed else None)
    options = {"delimiter": delimiter, "header": True}
    if not hashed:
        fit_csv(path, encoder, **options, chunk_rows=5)
    batch = joined(read_csv_batches(path, encoder, **options, chunk_rows=chunk_rows))
    rows = [["" if cell in MISSING else cell for cell in row] for row in rows]
    cells = dict(zip(names, zip(*rows)))
    numeric = {name: all(c == "" or is_number(c) for c in cells[name]) for name in names}
    kinds = {name: "numeric" if numeric[name] else "categorical" for name in names}
    assert encoder.kinds_ == kinds
    if hashed:
        ids = lambda name: plain_hash(name, 10**6)  # noqa: E731
        assert rows_of(batch) == oracle(names, rows, kinds, ids)
    else:  # names of features need not be unique: a column "a=b" and a column "a"
        named = [[(encoder.feature_names()[i], x) for i, x in row] for row in rows_of(batch)]
        assert named == oracle(names, rows, kinds, lambda name: name)


@pytest.mark.parametrize("n_columns", [None, 1000])
def test_chunks_and_start_rows_do_not_matter(n_columns, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "KIND_ROWS", 7)
    rng = np.random.default_rng(0)
    lines = [f'{rng.choice(list("xyz"))},{"" if i < 5 else i % 4},"a{i % 5}\nb",k{i % 6}' for i in range(50)]
    path = write(tmp_path, "p,q,r,y\n\n" + "\n\n".join(lines))
    encoder = TableEncoder("y", n_columns=n_columns)
    if n_columns is None:
        fit_csv(path, encoder, chunk_rows=3)
    whole = joined(read_csv_batches(path, encoder))
    assert whole.n_rows == 50
    for chunk_rows in (1, 2, 7, 8, 49, 50, 51, 1000):
        fresh = TableEncoder("y", n_columns=n_columns) if n_columns else encoder
        assert same(joined(read_csv_batches(path, fresh, chunk_rows=chunk_rows)), whole)
        for start_row in (0, 1, 8, 13, 49):
            fresh = TableEncoder("y", n_columns=n_columns) if n_columns else encoder
            rest = joined(read_csv_batches(path, fresh, chunk_rows=chunk_rows, start_row=start_row))
            expected = joined([whole.rows(slice(start_row, 50))])
            assert same(rest, expected)
    assert list(read_csv_batches(path, encoder, start_row=50)) == []
    with pytest.raises(InputError, match="has 50 rows; start_row=51 is beyond them"):
        list(read_csv_batches(path, encoder, start_row=51))


def test_long_rows_make_short_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "CHUNK_TEXT", 1000)
    path = write(tmp_path, "a,b\n" + "x,1\n" * 3000)
    batches = list(read_csv_batches(path, TableEncoder(n_columns=9)))
    assert max(b.n_rows for b in batches) < 600  # 64 records of four characters at a time, and those looked at first
    assert sum(b.n_rows for b in batches) == 3000


@pytest.mark.parametrize(("suffix", "module"), [("gz", gzip), ("bz2", bz2), ("xz", lzma)])
def test_compressed_files(suffix, module, tmp_path):
    plain = joined(read_csv_batches(write(tmp_path, TABLE), TableEncoder("class", n_columns=99)))
    packed = module.compress(TABLE.encode())
    path = write(tmp_path, packed, f"a.csv.{suffix}")
    assert same(joined(read_csv_batches(path, TableEncoder("class", n_columns=99))), plain)
    for damaged in (packed[:-9], b"no such thing", packed[:20] + bytes(20)):
        with pytest.raises(InputError, match=r"a.csv.\w+ (cannot be read past line \d|does not hold)"):
            list(read_csv_batches(write(tmp_path, damaged, f"a.csv.{suffix}"), TableEncoder(n_columns=99)))


@pytest.mark.parametrize(
    ("name", "content", "names", "n_rows"),
    [
        ("a.csv", "a;b\n1,5;2\n", ["a", "b"], 1),
        ("a.csv", "a|b|c\nx,|2|3\n", ["a", "b", "c"], 1),
        ("a.csv", 'a\tb\n"1\t,"\t3\n', ["a", "b"], 1),
        ("a.tsv.gz", "a,b\tc\n1\t2\n", ["a,b", "c"], 1),
        ("a.csv", "a\n1\n2\n", ["a"], 2),
        ("a.csv", "1,x\n2,y", ["c0", "c1"], 2),
        ("a.csv", "\r\n\r\na,b\r\n1,2\r\n\r\n", ["a", "b"], 1),
        ("a.csv", "a,b\r1,2\r", ["a", "b"], 1),
        ("a.csv", "a,b\n" + "1,2\n" * 30, ["a", "b"], 30),
    ],
)
def test_delimiter_and_header_are_found(name, content, names, n_rows, tmp_path):
    data = gzip.compress(content.encode()) if name.endswith("gz") else content
    encoder = TableEncoder(n_columns=10)
    assert sum(b.n_rows for b in read_csv_batches(write(tmp_path, data, name), encoder)) == n_rows
    assert list(encoder.kinds_) == names


def test_header_given(tmp_path):
    path = write(tmp_path, "x,y\n1,2\n")
    encoder = TableEncoder(-1, n_columns=10)
    assert joined(read_csv_batches(path, encoder, header=False)).labels.tolist() == [0, 1]
    assert (encoder.label_, encoder.classes_) == ("c1", ["y", "2"])
    encoder = TableEncoder(0, n_columns=10)
    assert joined(read_csv_batches(write(tmp_path, "1,2\n3,4\n"), encoder, header=True)).labels.tolist() == [3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.csv is empty"),
        ("\n\n", "a.csv is empty"),
        ("a,b\n1,2\n\n3\n", "line 4: there are 1 cells for 2 columns"),
        ('a,b\n"1\n\r\n",2\n1,2,3\n', "line 5: there are 3 cells for 2 columns"),
        ("\na,b,a\n1,2,3\n", "line 2: the column name 'a' occurs twice; give header=False to sketchnet.data."),
        ("a,b\n1,\0\n", "line 2: there is a NUL byte"),
        (b"a,b\n1,2\n\xff,2\n", "line 3: there are bytes that are not UTF-8"),
        (b"a,b\n1,2\n\xed\xa0\x80,2\n", "line 3: there are bytes that are not UTF-8"),
        (b"\xff\xfea\0,\0b\0\n\0", "line 1: there "),
        ('a,b\n1,"2\n', "line 2: unexpected end of data"),
        ('a,b\n1,"2"3\n', "line 2: ',' expected after '\"'"),
        ("a,b\n" + "1,2\n" * 6 + "1,x\n", "line 8, column 'b': 'x' is not a finite number, but the column is numeric"),
        ("a,b\n" + "1,2\n" * 6 + '"\n",2\n1,inf\n', "line 8, column 'a': '\\n' is not a finite number"),
        ("a,b\n" + "1,2\n" * 6 + "1,1_0\n", "line 8, column 'b': '1_0'"),
        ("a,b\n" + "1,2\n" * 6 + "1,٣\n", "line 8, column 'b': '٣'"),
        ("a,b\n" + "1,2\n" * 6 + "1,1e999\n", "line 8, column 'b': '1e999'"),
    ],
)
@pytest.mark.parametrize("chunk_rows", [1, 4, 100])
def test_errors_say_where(content, message, chunk_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "KIND_ROWS", 5)
    path = write(tmp_path, content)
    with pytest.raises(InputError) as error:
        list(read_csv_batches(path, TableEncoder(n_columns=9), chunk_rows=chunk_rows))
    assert message in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "options", [{"delimiter": ",,"}, {"delimiter": "\n"}, {"header": "yes"}, {"chunk_rows": 0}, {"start_row": -1}]
)
def test_bad_options(options, tmp_path):
    with pytest.raises(InputError, match="is not allowed"):
        list(read_csv_batches(write(tmp_path, TABLE), TableEncoder(n_columns=9), **options))


def test_an_endless_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "MAX_LINE", 1000)
    with pytest.raises(InputError, match="line 2: the line is longer than 1000 characters"):
        list(csv_chunks(write(tmp_path, b"a,b\n" + b"1," * 10_000), TableEncoder(n_columns=9)))


def test_what_would_fill_the_memory_is_refused(tmp_path):
    for text, message in (
        (b'a,b\n1,"' + b"2\n" * 2000, "line 500: the row that goes on here is longer than 1000 characters"),
        (b",".join(b"%d" % i for i in range(99)), "line 1: there are 99 columns; allowed are 41"),
        (b"a,b,c,d\n" + b"1,2,3,4\n" * 90, "line 85: 84 rows have 336 cells; allowed at a time are 333"),
    ):
        with pytest.raises(InputError, match=message):
            list(csv_chunks(write(tmp_path, text), TableEncoder(n_columns=9), limits=Limits(line=1000)))
    table = write(tmp_path, b"a,b\n" + b"1,2\n" * 150 + b"1,2,3\n")
    with pytest.raises(InputError, match="line 152: there are 3 cells for 2 columns"):
        list(csv_chunks(table, TableEncoder(n_columns=9), limits=Limits(line=1000)))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_rows_or_clean_errors(seed, tmp_path):
    rng = np.random.default_rng(seed)
    good = np.frombuffer((TABLE * 3).encode(), np.uint8)
    for _ in range(100):
        bad = good.copy()[: rng.integers(1, len(good) + 1)]
        for _ in range(rng.integers(1, 4)):
            bad[rng.integers(len(bad))] = rng.choice(np.frombuffer(b'\0\xff\n\r",9e-\xc3', np.uint8))
        path = write(tmp_path, bad.tobytes())
        try:
            batches = list(read_csv_batches(path, TableEncoder(-1, n_columns=99), chunk_rows=3))
            assert all(np.isfinite(b.values).all() and b.indices.max(initial=0) < 99 for b in batches)
        except InputError as error:
            assert str(path) in str(error)  # noqa: PT017 (most of the files are read)


def test_cells_may_be_as_long_as_lines(tmp_path):
    """Python's limit on cells is 131,072 characters; it stays for other readers."""
    (tmp_path / "a.csv").write_text("a,b\n1," + "x" * 200_000 + "\n2,y\n")
    limit = csv.field_size_limit()
    encoder = fit_csv(tmp_path / "a.csv", TableEncoder())
    assert [len(name) for name in encoder.feature_names()] == [1, 200_002, 3]
    assert csv.field_size_limit() == limit
