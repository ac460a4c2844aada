"""Bad usage is one line with what was given and what is allowed; help and versions are no bad usage."""

import pytest

from sketchnet import cli
from tests.cli.command_line import bad, good, sketchnet


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("project x.npz o.npy -k abc", "--components abc is not possible; it must be a valid integer; try sketchnet p"),
        ("project x.npz o.npy --components=abc", "--components abc is not possible; it must be a valid integer"),
        ("project x.npz o.npy -kabc", "--components abc is not possible; it must be a valid integer"),
        ("explain m x.svm --top 3 --top 0", "--top 0 is not possible; it must be greater than or equal to 1"),
        ("synth out --density many", "--density many is not possible; it must be a valid number"),
        ("foo", "there is no verb 'foo'; there are data, encode, evaluate, explain, ingest, predict, project, report"),
        ("trian x.svm", "there is no verb 'trian'; did you mean train?; try sketchnet --help"),
        ("data show", "there is no verb 'show'; there are list; try sketchnet data --help"),
        ("train x.svm --sed 3", "there is no option --sed; did you mean --seed"),
        (
            "data list --colour",
            "there is no option --colour; there are --help, --json; try sketchnet data list",
        ),
        ("train x.svm --seed", "option '--seed' requires an argument; try sketchnet train --help"),
        ("data list --json=3", "option '--json' does not take a value"),
        ("predict m x.svm y.svm", "got unexpected extra argument(s) (y.svm); its arguments are MODEL INPUT; try sketc"),
        ("project", "missing argument 'INPUT'; its arguments are INPUT OUTPUT; try sketchnet project --help"),
    ],
)
def test_bad_usage(args, message, tmp_path):
    assert bad(*args.split(), message=f"sketchnet: {message}", cwd=tmp_path).stdout == ""


def test_what_was_given_stays_on_the_line(tmp_path):
    bad("synth", "out", "-n", "1\n2", message=r"sketchnet: --rows 1\n2 is not possible", cwd=tmp_path)
    bad("pro\nject", message=r"there is no verb 'pro\nject'; did you mean", cwd=tmp_path)
    bad("it's", message='there is no verb "it\'s"; there are', cwd=tmp_path)
    bad("synth", "--it's\n", message=r"there is no option --it's\n; there are", cwd=tmp_path)


@pytest.mark.parametrize("args", ["", "data"])
def test_nothing_given_shows_the_help(args, tmp_path):
    done = sketchnet(*args.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == good(*args.split(), "--help", cwd=tmp_path)


def test_version(tmp_path):
    assert good("--version", cwd=tmp_path).startswith("sketchnet ")


def test_ctrl_c_is_a_failure_that_says_how_to_go_on(tmp_path, monkeypatch):
    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sketchnet.data.datasets.list_datasets", stopped)
    done = sketchnet("data", "list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "sketchnet: stopped as asked\n")
    monkeypatch.setattr("sketchnet.data.synthetic.Synthetic", stopped)
    done = sketchnet("synth", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"sketchnet: stopped as asked{cli._go_on()}\n")
