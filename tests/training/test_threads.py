"""The budget of threads: what torch and our kernels get, and that torch has afterwards what it had."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet import SketchClassifier, SketchRegressor
from sketchnet.errors import InputError, TrainingError
from sketchnet.kernels.cpu.threads import cores, n_threads
from sketchnet.nn import SketchNetwork
from sketchnet.training.threads import choose_threads, step_work, thread_budget
from tests.training.toy import assert_same_network, make_model
from tests.training.toy import examples as toy_examples

LARGE = 1 << 30
QUICK = {"epochs": 1, "sparse_learning_rate": 0.01}


@pytest.fixture
def torch_has(monkeypatch):
    """A function that sets torch's number, in an environment that says nothing of threads."""
    for name in ("OMP_NUM_THREADS", "SKETCHNET_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def rows(n=300, d=2000):
    X = sparse.random_array((n, d), density=0.01, format="csr", rng=0, dtype=np.float32)
    return X, (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)


def seen_while(monkeypatch, work):
    """Torch's numbers of threads, and our kernels', while networks computed something."""
    numbers, forward = set(), SketchNetwork.forward_projected

    def watched(self, projected):
        numbers.add((torch.get_num_threads(), n_threads()))
        return forward(self, projected)

    monkeypatch.setattr(SketchNetwork, "forward_projected", watched)
    work()
    return numbers


def test_work_decides_up_to_what_torch_had(torch_has, monkeypatch):
    torch_has(3)
    monkeypatch.setenv("SKETCHNET_THREADS", "8")
    assert [choose_threads(work) for work in (0, 1 << 20, 1 << 23, LARGE)] == [1, 1, 2, 3]
    assert [choose_threads(LARGE, most) for most in (1, 2, 5)] == [1, 2, 5]
    assert choose_threads(1 << 20, 5) == 1


def test_a_step_s_work_counts_dense_layers_alone():
    _, task = toy_examples("binary", 50)
    assert step_work(make_model(task, n_components=64, hidden=(32,)).network, 50) == 50 * (64 * 32 + 32)


@pytest.mark.parametrize(("name", "text"), [("SKETCHNET_THREADS", "2"), ("OMP_NUM_THREADS", "2,1")])
def test_variables_are_upper_limits(name, text, torch_has, monkeypatch):
    torch_has(4)
    monkeypatch.setenv(name, text)
    assert n_threads() == 2
    with thread_budget(LARGE):
        assert (torch.get_num_threads(), n_threads()) == (2, 2)
    assert torch.get_num_threads() == 4


def test_variables_that_say_nothing_are_left_alone(torch_has, monkeypatch):
    monkeypatch.setenv("SKETCHNET_THREADS", "many")
    monkeypatch.setenv("OMP_NUM_THREADS", "0")
    assert n_threads() == cores()


@pytest.mark.parametrize("hidden", [(8,), (1000, 1000)], ids=["small", "large"])
def test_torch_has_afterwards_what_it_had(hidden, torch_has, monkeypatch):
    torch_has(2)
    X, y = rows()
    monkeypatch.setenv("SKETCHNET_THREADS", "2")
    model = SketchClassifier(hidden=hidden, batch_size=30, **QUICK)
    n = 1 if hidden == (8,) else 2
    assert seen_while(monkeypatch, lambda: model.fit(X, y)) == {(n, 2)}
    assert torch.get_num_threads() == 2
    assert seen_while(monkeypatch, lambda: model.partial_fit(X, y)) == {(n, 2)}
    assert torch.get_num_threads() == 2
    assert seen_while(monkeypatch, lambda: model.predict_proba(X)) == {(n, 2)}
    assert seen_while(monkeypatch, lambda: model.predict_proba(X[:1])) == {(1, 2)}
    assert torch.get_num_threads() == 2


def test_after_a_fit_that_fails_too(torch_has):
    torch_has(2)
    X, y = rows()
    model = SketchRegressor(learning_rate=1e30, optimiser="sgd", batch_size=30, hidden=(1000,), epochs=3)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(TrainingError), np.errstate(all="ignore"):
            learn(X * 1e15, y * 1e30)
        assert torch.get_num_threads() == 2
    assert not resting()


def test_the_argument_limits_torch_and_kernels(torch_has, monkeypatch):
    torch_has(2)
    X, y = rows()
    model = SketchClassifier(threads=1, hidden=(1000, 1000), batch_size=30, **QUICK)
    assert seen_while(monkeypatch, lambda: model.fit(X, y)) == {(1, 1)}
    assert seen_while(monkeypatch, lambda: model.predict(X)) == {(1, 1)}
    for threads in (0, 1.5, "2"):
        with pytest.raises(InputError, match="threads="):
            SketchClassifier(threads=threads, **QUICK).fit(X, y)


def test_one_setting_gives_the_same_bits_whatever_torch_had(torch_has):
    X, y = rows()
    models = []
    for number in (1, 2):
        torch_has(number)
        models.append(SketchClassifier(threads=2, hidden=(1000,), batch_size=30, **QUICK).fit(X, y).model_)
    assert_same_network(*models)


def test_budgets_of_two_python_threads_leave_what_was_there(torch_has):
    torch_has(2)
    begun, over, after = threading.Event(), threading.Event(), []

    def other():
        with thread_budget(1):
            begun.set()
            over.wait()
        after.append(torch.get_num_threads())

    with thread_budget(1):
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
    over.set()
    thread.join()
    fresh = threading.Thread(target=lambda: after.append(torch.get_num_threads()))
    fresh.start()
    fresh.join()
    assert after == [2, 2]
    assert torch.get_num_threads() == 2


def resting():
    return [thread for thread in threading.enumerate() if thread.name == "sketchnet-rest"]


def test_one_team_rests_where_several_threads_would_spin(torch_has, monkeypatch):
    torch_has(2)
    monkeypatch.setenv("SKETCHNET_THREADS", "2")
    with thread_budget(1):
        assert not resting()
    with thread_budget(LARGE):
        with thread_budget(LARGE):
            assert len(resting()) == 1
        assert len(resting()) == 1
    assert not resting()
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    with thread_budget(LARGE):
        assert not resting()


WAITING = """
import resource, time, torch
from sketchnet.training.threads import thread_budget
torch.set_num_threads(2)
x = torch.zeros(1 << 17)
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
with thread_budget(1 << 30):
    x.add_(1)
    before = used()
    for _ in range(100):
        x.add_(1)  # microseconds of work for both, and milliseconds in which the second waits for more
        time.sleep(0.004)
    print(used() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere OpenMP is not libgomp")
@pytest.mark.skipif(cores() < 2, reason="threads that share a core do not spin")
def test_threads_that_wait_do_not_spin():
    def seconds(**variables):
        names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "SKETCHNET_THREADS", "OMP_NUM_THREADS")
        clean = {name: value for name, value in os.environ.items() if name not in names}
        how = {"env": {**clean, **variables}, "capture_output": True, "text": True, "check": True}
        return float(subprocess.run([sys.executable, "-c", WAITING], **how).stdout)

    spinning = seconds(GOMP_SPINCOUNT="300000")  # libgomp's usual number, and ours is left out
    assert seconds() < spinning / 2


def test_only_the_command_line_says_how_threads_wait():
    clean = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    code = """
import os, sys
import sketchnet.cli, sketchnet.training, sketchnet.estimators.networks
assert "OMP_WAIT_POLICY" not in os.environ
"""
    subprocess.run([sys.executable, "-c", code], env=clean, check=True)
    code = """
import os, sys
from sketchnet.cli import main
assert not {"torch", "sklearn", "numba"} & set(sys.modules)  # which would have read it
sys.argv = ["sketchnet", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OMP_WAIT_POLICY"])
"""
    for given, expected in [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")]:
        done = subprocess.run(
            [sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == expected
