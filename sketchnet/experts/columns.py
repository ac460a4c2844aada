"""What the columns of a row have meant in other rows, summed: weights that one small network makes for all columns."""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch
from sketchnet.experts.rows import Sample
from sketchnet.experts.blend import row_losses
from sketchnet.kernels.cpu import column_statistics as kernels
import os

FOLDS = int(os.environ.get("F", 8))
HIDDEN = int(os.environ.get("H", 16))
BATCH = int(os.environ.get("BE", 32768))
BUDGET = float(os.environ.get("BUD", 6e6))
EPOCHS = int(os.environ.get("EP", 6))
RATE = float(os.environ.get("LR", 1e-2))
KN = os.environ.get("KN", "auto")
SKIP = int(os.environ.get("SKIP", 1))
STD = int(os.environ.get("STD", 1))
RAW = 0


class Statistics:
    def __init__(self, sample: Sample, kind: str, n_outputs: int, knots: np.ndarray, folds: np.ndarray | None):
        rows = sample.rows
        marks, owners, weights = _marks(sample, kind, n_outputs)
        self.n_outputs, self.is_number, self.knots = n_outputs, kind == "regression", knots
        self.from_total = n_outputs if kind in ("multilabel", "regression") else 0
        self.n_folds = 1 if folds is None else int(folds.max()) + 1
        keys = marks if folds is None else marks * self.n_folds + folds[owners]
        order = np.argsort(keys, kind="stable")
        keys, owners, weights = keys[order].astype(np.int32), owners[order], weights[order].astype(np.float32)
        offsets = np.zeros(rows.n_columns + 1, np.int64)
        kernels.count_cells(rows.indptr, rows.indices, owners, keys, offsets[1:])
        self.offsets = offsets.cumsum()
        self.cell_keys = np.empty(self.offsets[-1], np.int32)
        self.sums = np.zeros((self.offsets[-1], len(knots)), np.float32)
        kernels.fill_cells(*rows.arrays, owners, keys, weights, knots, self.offsets[1:], self.cell_keys, self.sums)
        own = np.bincount(marks, sample_weights := _marks(sample, kind, n_outputs)[2], minlength=n_outputs)[:n_outputs]
        total = weights.sum() if not self.from_total else 1
        if kind == "multilabel":
            total = np.bincount(marks, _marks(sample, kind, n_outputs)[2], minlength=n_outputs + 1)[n_outputs]
        self.priors = np.clip(own / total, 1e-9, 1).astype(np.float32) if kind != "regression" else np.ones(1, np.float32)

    def describe(self, columns, without=-1):
        return kernels.describe_columns(columns, self.offsets, self.cell_keys, self.sums, self.n_folds, without,
            self.n_outputs, self.from_total, self.is_number, self.priors)


def _marks(sample, kind, n_outputs):
    n = sample.rows.n_rows
    w = np.ones(n) if sample.weights is None else sample.weights * (n / sample.weights.sum())
    rows = np.arange(n)
    if kind == "multiclass":
        return np.asarray(sample.targets).astype(np.int64), rows, w
    if kind == "binary":
        return 1 - np.asarray(sample.targets).astype(np.int64), rows, w
    if kind == "regression":
        return np.repeat([0, 1], n), np.tile(rows, 2), np.r_[w * sample.targets, w]
    t = sparse.csr_array(sample.targets).tocoo()
    return np.r_[t.col, np.full(n, n_outputs)].astype(np.int64), np.r_[t.row, rows], np.r_[w[t.row], w]


def choose_knots(values):
    v = values[:: max(1, len(values) // 100_000)]
    if KN != "auto":
        qs = [float(x) for x in KN.split(",")]
        return np.unique(np.quantile(v, qs)).astype(np.float32)
    lo, hi = v.min(), v.max()
    if lo == hi:
        return np.array([lo], np.float32)
    if lo < 0:
        qs = [.001, .02, .1, .25, .5, .75, .9, .98, .999]
    else:
        qs = [.02, .98]
    return np.unique(np.quantile(v, qs)).astype(np.float32)


class ColumnsExpert:
    name = "columns"

    def __init__(self, kind, n_outputs, seed=0, effort="auto"):
        self.kind, self.n_outputs, self.seed = kind, n_outputs, seed

    def fit(self, train, valid):
        import torch
        from sketchnet.training.threads import thread_budget
        T = time.process_time
        t0 = T()
        rng = np.random.default_rng(self.seed)
        n = train.rows.n_rows
        self.knots = choose_knots(train.rows.values)
        folds = rng.integers(0, FOLDS, n) if train.groups is None else rng.integers(0, FOLDS, len(g := np.unique(train.groups, return_inverse=True)[1]) and g.max() + 1)[g]
        S = Statistics(train, self.kind, self.n_outputs, self.knots, folds)
        self.full = Statistics(train, self.kind, self.n_outputs, self.knots, None)
        t1 = T()
        self.mean_length = train.rows.n_entries / n
        batch_rows = int(np.clip(BATCH / self.mean_length, 64, 1024))
        steps = int(min(EPOCHS * n / batch_rows, max(60, BUDGET / self.mean_length / batch_rows)))
        with thread_budget(0):
            gen = torch.Generator().manual_seed(self.seed)
            torch.manual_seed(self.seed)
            width = S.describe(np.zeros(1, np.int64))[2].shape[1]
            B = len(self.knots)
            from torch import nn
            self.net = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, B))
            self.skip = nn.Linear(width, B, bias=False)
            nn.init.zeros_(self.skip.weight)
            nn.init.zeros_(self.net[-1].weight) if SKIP else None
            p = S.priors
            self.bias = nn.Parameter(torch.zeros(self.n_outputs))
            self.scale, self.power = nn.Parameter(torch.tensor(.3)), nn.Parameter(torch.tensor(.5))
            params = [*self.net.parameters(), *self.skip.parameters(), self.bias, self.scale, self.power]
            self.shift, self.size = 0., 1.
            opt = torch.optim.AdamW(params, RATE, weight_decay=1e-4)
            done, slots = 0, np.full(train.rows.n_columns, -1, np.int64)
            y = torch.from_numpy(np.asarray(train.targets.toarray() if sparse.issparse(train.targets) else train.targets))
            tm = np.zeros(5)
            losses = []
            while done < steps:
                batches = [(f, b) for f in range(FOLDS) for b in np.array_split(rng.permutation(np.flatnonzero(folds == f)), max(1, (folds == f).sum() // batch_rows))]
                for j in rng.permutation(len(batches)):
                    f, b = batches[j]
                    if done >= steps:
                        break
                    r = min(1, (done + 1) / (.1 * steps)) * (.5 * (1 + np.cos(np.pi * done / steps)) * .98 + .02)
                    for g in opt.param_groups:
                        g["lr"] = RATE * r
                    a = T()
                    columns = np.empty(int((train.rows.indptr[b + 1] - train.rows.indptr[b]).sum()), np.int64)
                    columns = columns[: kernels.number_columns(train.rows.indptr, train.rows.indices, b, slots, columns)]
                    starts, outputs, X = S.describe(columns, f)
                    c = T(); tm[0] += c - a
                    if done == 0 and STD:
                        self.shift, self.size = torch.from_numpy(X.mean(0)), torch.from_numpy(X.std(0) + 1e-3)
                    W = self.generate(X)
                    d = T(); tm[1] += d - c
                    Z = torch.from_numpy(kernels.add_up(*train.rows.arrays, b, slots, starts, outputs, W.detach().numpy(), self.knots, self.n_outputs)).requires_grad_()
                    e = T(); tm[2] += e - d
                    z = Z * self.norm(train.rows, b)[:, None] + self.bias
                    loss = self.loss(z, y[b])
                    opt.zero_grad()
                    loss.backward()
                    G = np.zeros((len(X), B), np.float32)
                    a = T()
                    kernels.slopes_of_weights(*train.rows.arrays, b, slots, starts, outputs, self.knots, Z.grad.numpy(), G)
                    c = T(); tm[3] += c - a
                    W.backward(torch.from_numpy(G))
                    d = T(); tm[4] += d - c
                    opt.step()
                    slots[columns] = -1
                    losses.append(float(loss.detach()))
                    done += 1
        t2 = T()
        out = self.logits(valid.rows)
        print(f"   knots {self.knots} build {t1-t0:.2f} cells {len(S.cell_keys)/1e6:.1f}M train {t2-t1:.2f} steps {steps} of {batch_rows} rows, groups {len(X)} predict {T()-t2:.2f} parts {tm.round(2)} power {float(self.power.detach()):.2f} scale {float(self.scale.detach()):.2f} loss {np.mean(losses[-50:]):.4f}")
        return out

    def generate(self, X):
        import torch
        x = (torch.from_numpy(X) - self.shift) / self.size
        return self.net(x) + (self.skip(x) if SKIP else 0)

    def norm(self, rows, b):
        import torch
        l = torch.from_numpy(((rows.indptr[b + 1] - rows.indptr[b]) / self.mean_length).clip(1e-2).astype(np.float32))
        return self.scale * l ** -self.power / self.mean_length**.5

    def loss(self, z, y):
        F = __import__("torch").nn.functional
        if self.kind == "multiclass":
            return F.cross_entropy(z, y)
        if self.kind == "regression":
            return F.mse_loss(z[:, 0], y.float())
        return F.binary_cross_entropy_with_logits(z, y.float().reshape(z.shape))

    def logits(self, rows):
        import torch
        slots = np.full(rows.n_columns, -1, np.int64)
        b = np.arange(rows.n_rows)
        columns = np.empty(min(rows.n_columns, rows.n_entries), np.int64)
        columns = columns[: kernels.number_columns(rows.indptr, rows.indices, b, slots, columns)]
        with torch.no_grad():
            starts, outputs, X = self.full.describe(columns)
            W = np.concatenate([self.generate(X[i:i + 65536]).numpy() for i in range(0, len(X), 65536)])
            Z = kernels.add_up(*rows.arrays, b, slots, starts, outputs, W, self.knots, self.n_outputs)
            return (torch.from_numpy(Z) * self.norm(rows, b)[:, None] + self.bias).numpy()
