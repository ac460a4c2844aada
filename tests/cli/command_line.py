"""`sketchnet` as a person meets it, in this process, which saves seconds a run.

An error that the command line does not turn into an exit code comes out here as it is.
"""

import contextlib
import io
import sys
from pathlib import Path
from types import SimpleNamespace

from sketchnet.cli import main


def sketchnet(*args, cwd, stdin=b"", main=main):
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["sketchnet", *map(str, args)], io.TextIOWrapper(io.BytesIO(stdin))
    code = 0
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv, sys.stdin = before
    out.flush()
    return SimpleNamespace(returncode=code, stdout=out.buffer.getvalue().decode(), stderr=err.getvalue())


def good(*args, **options):
    done = sketchnet(*args, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def bad(*args, message, **options):
    done = sketchnet(*args, **options)
    assert message in done.stderr
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done


def contents(folder):
    return {str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}
