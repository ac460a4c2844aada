"""`sketchnet predict` between pipes: lines from standard input, readers that leave."""

import contextlib
import signal
import subprocess
import sys

from tests.cli.command_line import bad, good
from tests.cli.planted import N


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


def test_each_line_is_answered_as_it_comes(world):
    command = [sys.executable, "-m", "sketchnet", "predict", "urls", "-"]
    with subprocess.Popen(command, cwd=world, stdin=-1, stdout=-1, text=True, bufsize=1) as process:
        for line, answer in (("shop.example/login", "bad"), ("news.example/home", "good")):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == answer + "\n"  # while the input is open
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_reader_that_has_had_enough(here):
    (here / "long.svm").write_bytes((here / "rows.svm").read_bytes() * 200)
    command = [sys.executable, "-m", "sketchnet", "predict", "rows", "long.svm", "--proba"]
    with subprocess.Popen(command, cwd=here, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "label\t-1\t1\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


def test_ctrl_c_is_an_answer_of_one_line(here):
    command = [sys.executable, "-m", "sketchnet", "predict", "rows", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # What runs the tests in the background may ignore the signal, and children inherit that.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, cwd=here, **pipes, **heard) as process:
        process.stdin.write("1 1:1\n")
        process.stdin.flush()
        assert process.stdout.readline() in ("1\n", "-1\n")  # it waits for more
        for _ in range(6):  # one that comes just before it begins to wait is seen only after the next
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                break
        assert process.returncode == 1
        assert process.stderr.read() == "sketchnet: stopped as asked\n"


def test_the_input_is_not_overwritten(world, tmp_path):
    rows = (world / "rows.svm").read_bytes()
    (tmp_path / "rows.svm").write_bytes(rows)
    for output in ("rows.svm", "./rows.svm", tmp_path / "rows.svm"):
        message = "or in it, which would be lost; choose another file"
        bad("predict", world / "rows", "rows.svm", "--output", output, message=message, cwd=tmp_path)
    assert (tmp_path / "rows.svm").read_bytes() == rows
