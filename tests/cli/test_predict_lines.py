"""`sketchnet predict` between pipes: lines from standard input, readers that leave."""

import os
import signal
from contextlib import contextmanager

from tests.cli.command_line import bad, good
from tests.cli.planted import N
from tests.forked import start


def test_lines_from_standard_input(world):
    text = (world / "rows.svm").read_bytes()
    assert good("predict", "rows", "-", cwd=world, stdin=text) == good("predict", "rows", "rows.svm", cwd=world)
    # Bytes with which packed files begin, an empty line, and no newline at the end.
    lines = "BZh.example/login\n\nmail.example/home\r\n\x1f\x8blogin".encode()
    assert good("predict", "urls", "-", cwd=world, stdin=lines).splitlines()[::2] == ["bad", "good"]
    assert len(good("predict", "urls", "-", cwd=world, stdin=lines).splitlines()) == 4


def test_errors_name_the_line_of_standard_input(world):
    rows = (world / "rows.svm").read_bytes()
    lines = rows * 20 + b"1 2:1 3:oops\n"  # beyond the first block
    done = bad("predict", "rows", "-", message=f"standard input:{20 * N + 1}:9:", cwd=world, stdin=lines)
    assert len(done.stdout.splitlines()) > 1000  # what came before was answered
    message = "standard input:3:5: id '51' is too large; allowed are 1 to 50"
    bad("predict", "rows", "-", message=message, cwd=world, stdin=b"# no row\n1 2:1\n-1  51:1\n")
    message = "standard input:3:6: id '51' is too large; allowed are 1 to 50"
    bad("predict", "rows", "-", "--columns", "60", message=message, cwd=world, stdin=b"?\n1 2:1\nspam 51:1\n")
    bad("predict", "urls", "-", message="standard input:2:", cwd=world, stdin=b"good\n\xff\xfe\n")
    bad("predict", "table", "-", message="table cannot come from standard input", cwd=world)
    bad("predict", "rows", "-", "--norm", "l2", message="--norm is for text", cwd=world)


@contextmanager
def piped(*command, cwd, pipes):
    """Gives the process of a command, what it reads and what it writes; what it says of errors is in a file."""
    for name in ("given", "said"):
        os.mkfifo(pipes / name)
    (pipes / "errors").touch()
    process = start(*command, cwd=cwd, streams=[pipes / "given", pipes / "said", pipes / "errors"])
    with open(pipes / "given", "w") as given, open(pipes / "said") as said:
        yield process, given, said


def test_each_line_is_answered_as_it_comes(world, tmp_path):
    with piped("predict", "urls", "-", cwd=world, pipes=tmp_path) as (process, given, said):
        for line, answer in (("shop.example/login", "bad"), ("news.example/home", "good")):
            print(line, file=given, flush=True)
            assert said.readline() == answer + "\n"  # while the input is open
        given.close()
        process.join(60)
        assert process.exitcode == 0


def test_a_reader_that_has_had_enough(here, tmp_path):
    (here / "long.svm").write_bytes((here / "rows.svm").read_bytes() * 200)
    with piped("predict", "rows", "long.svm", "--proba", cwd=here, pipes=tmp_path) as (process, _, said):
        assert said.readline() == "label\t-1\t1\n"
        said.close()
        process.join(60)
        assert process.exitcode == 1
        assert (tmp_path / "errors").read_text() == ""


def test_ctrl_c_is_an_answer_of_one_line(here, tmp_path):
    with piped("predict", "rows", "-", cwd=here, pipes=tmp_path) as (process, given, said):
        print("1 1:1", file=given, flush=True)
        assert said.readline() in ("1\n", "-1\n")  # it waits for more
        for _ in range(6):  # one that comes just before it begins to wait is seen only after the next
            os.kill(process.pid, signal.SIGINT)
            process.join(10)
            if process.exitcode is not None:
                break
        assert process.exitcode == 1
        assert (tmp_path / "errors").read_text() == "sketchnet: stopped as asked\n"


def test_the_input_is_not_overwritten(world, tmp_path):
    rows = (world / "rows.svm").read_bytes()
    (tmp_path / "rows.svm").write_bytes(rows)
    for output in ("rows.svm", "./rows.svm", tmp_path / "rows.svm"):
        message = "or in it, which would be lost; choose another file"
        bad("predict", world / "rows", "rows.svm", "--output", output, message=message, cwd=tmp_path)
    assert (tmp_path / "rows.svm").read_bytes() == rows
