"""What files do not say is decided by all of their rows, wherever chunks end."""

import pytest

from sketchnet.data import ingest, open_shards, read_svmlight
from sketchnet.data.ngrams import NgramHasher
from sketchnet.data.sources import SvmlightSource, TextSource
from sketchnet.errors import BeyondColumns, InputError
from tests.data.test_shards import same

CONTRADICTIONS = [
    (["1 1:1\n2 2:1\n1 0:1\n"], {}),
    (["1 1:1\n2 2:1\n", "# no row\n", "1 0:1\n"], {}),
    (["1 1:1\n2 2:1\n1,2 1:1\n"], {}),
    ([" 1:1\n 2:1\n1,2 1:1\n2 0:1\n"], {}),
    (["1 1:1\n 2:1\n2 1:1\n", " 1:1\n1,2 1:1\n"], {}),
    ([" 1:1\n1 2:1\n2 1:1\n", "1,2 0:1\n 1:1\n"], {}),
    (["1 1:1\nbad\n 2:1\n1,2 0:1\n1 1:1\n"], {"on_error": "skip"}),
    (["1 1:1\n1 0:x\n1 2:1\n"], {"on_error": "skip"}),
    (["# 1\n# 2\n\n1 0:1\n"], {}),
    (["1 1:1\n 2:1\n", "2 1:1\n1 1:x\n1,2 1:1\n"], {}),
    (["1 1:1\n2 2:1\n", "2 1:1\n 1:1\n 1:1\n"], {}),
    ([" 1:1\n", "# no row\n 2:1\n", "2 1:1\n"], {}),
    (["1 1:1\n1 0:1\n"], {"base": 1}),
    (["1 1:1\n1,2 0:1\n"], {"labels": "single"}),
    (["1 1:1\n2 5:1\n1 0:1\n"], {"n_columns": 5}),
    (["1 1:1\n2 4:1\n1 0:1\n"], {"n_columns": 5}),
    (["1 1:1\nx\n1 7:1\n1 0:1\n"], {"n_columns": 5, "on_error": "skip"}),
]


@pytest.mark.parametrize(("texts", "options"), CONTRADICTIONS)
def test_what_is_auto_depends_on_the_files_alone(texts, options, tmp_path):
    files = [tmp_path / f"{number}.svm" for number in range(len(texts))]
    for file, content in zip(files, texts):
        file.write_text(content)
    strict = {"on_error": "skip_malformed"} if "on_error" in options else {}
    try:
        expected, error = read_svmlight(files, **{**options, **strict}), None
    except InputError as told:
        error = str(told)
    for chunk_bytes in (1, 7, 13, 20, 1000):
        source, job = SvmlightSource(files, **options, chunk_bytes=chunk_bytes), {"n_columns": options.get("n_columns")}
        out = tmp_path / str(chunk_bytes)
        if error:
            with pytest.raises(InputError) as caught:
                ingest(source, out, **job, shard_entries=1)
            assert str(caught.value) == error
        else:
            told = ingest(source, out, **job, shard_entries=1)
            same(open_shards(out)[:], expected)
            assert told["labels"] == ("single" if expected.label_indptr is None else "multi")
            assert told["base"] == (0 if " 0:1" in "".join(texts) else 1)
            assert told.get("skipped_lines", 0) == (1 if strict else 0)
            assert set(told) >= {"base", "labels"}
            assert not {"certain", "unlabelled", "groups"} & set(told)


def test_an_id_beyond_the_columns_is_told_by_its_line(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\nx\n")
    (tmp_path / "b.svm").write_text("2 1:1\ny\n2 3:1 9:1\n")
    source = SvmlightSource([tmp_path / "a.svm", tmp_path / "b.svm"], n_columns=5, on_error="skip")
    with pytest.raises(BeyondColumns, match=r"b.svm:3:7: id '9' is too large; allowed are 1 to 5") as caught:
        ingest(source, tmp_path / "out", n_columns=5)
    assert caught.value.needed == 9


@pytest.mark.parametrize("chunk_bytes", [1, 12, 1 << 19])
def test_labels_of_text_are_numbers_if_all_are(chunk_bytes, tmp_path):
    (tmp_path / "a.tsv").write_text("1\tx\n2\ty\n1\tz\n")
    (tmp_path / "b.tsv").write_text("2\tx\nspam\ty\n1\tz\n")
    (tmp_path / "c.tsv").write_text("1\tx\n9007199254740993\ty\n")

    def read(*names, **learnt):
        fields = {"text_column": 2, "label_column": 1, "chunk_bytes": chunk_bytes, **learnt}
        source = TextSource([tmp_path / name for name in names], NgramHasher("char", (1, 2), 1000), **fields)
        told = ingest(source, tmp_path / "out", shard_entries=1, overwrite=True)
        return open_shards(tmp_path / "out")[:].labels.tolist(), told.get("classes")

    assert read("a.tsv") == ([1, 2, 1], None)
    assert read("a.tsv", "b.tsv") == ([0, 1, 0, 1, 2, 0], ["1", "2", "spam"])
    assert read("c.tsv", "b.tsv") == ([0, 1, 2, 3, 0], ["1", "9007199254740993", "2", "spam"])
    with pytest.raises(InputError, match=r"c.tsv:2: label '9007199254740993' has more digits than a number keeps"):
        read("c.tsv", "a.tsv")
    with pytest.raises(InputError, match=r"b.tsv:2: label 'spam' is not a number, as the labels before it are"):
        read("b.tsv", learnt={"classes": None})
