"""A file with some bytes, for tests of readers."""

import pytest


@pytest.fixture
def file(tmp_path):
    def write(content: bytes, name="x.svm"):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write
