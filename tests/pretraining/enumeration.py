"""Tiny RBMs whose laws are summed up state by state, from the energy alone, in float64."""

from itertools import product

import torch

from sketchnet.pretraining import RBM, RBMConfig


def tiny_rbm(visible="binary", hidden="binary", n_visible=4, n_hidden=3, scale=0.8, seed=1) -> RBM:
    """An RBM with weights and biases of order `scale`, in float64."""
    rbm = RBM(RBMConfig(n_visible, n_hidden, visible, hidden, seed)).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in (rbm.weight, rbm.hidden_bias, rbm.visible_bias):
        parameter.copy_(scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return rbm


def bits(n: int) -> torch.Tensor:
    return torch.tensor(list(product((0.0, 1.0), repeat=n)), dtype=torch.float64)


def sequences(n_words: int, length: int) -> torch.Tensor:
    """The counts of every sequence of words: as many rows as there are sequences."""
    words = torch.tensor(list(product(range(n_words), repeat=length)))
    return torch.nn.functional.one_hot(words, n_words).sum(1).double()


def energy(rbm: RBM, v: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """E(v, h) for all pairs of rows, as the class's docstring has it."""
    pairs = -(v @ rbm.weight.t() @ h.t()) - (h @ rbm.hidden_bias)[None, :]
    if rbm.config.hidden == "gaussian":
        pairs = pairs + 0.5 * h.square().sum(1)[None, :]
    if rbm.config.visible == "gaussian":
        return pairs + 0.5 * (v - rbm.visible_bias).square().sum(1)[:, None]
    return pairs - (v @ rbm.visible_bias)[:, None]


def states(rbm: RBM, length: int = 0) -> torch.Tensor:
    """All visible states of a binary RBM, or all documents of a length as sequences."""
    n = rbm.config.n_visible
    return sequences(n, length) if rbm.config.visible == "poisson" else bits(n)


def joint(rbm: RBM, length: int = 0) -> torch.Tensor:
    """p(v, h): rows are `states`, columns `bits` of the hidden units."""
    pairs = -energy(rbm, states(rbm, length), bits(rbm.config.n_hidden))
    return torch.softmax(pairs.flatten(), 0).view(pairs.shape)


def mean_log_likelihood(rbm: RBM, data: torch.Tensor, length: int = 0) -> float:
    """Exact, by the sum over all states; for gaussian visible units, by the integral of each hidden state's normal."""
    rbm, data, h = rbm.double(), data.double(), bits(rbm.config.n_hidden)
    weights = torch.logsumexp(-energy(rbm, data, h), 1)
    if rbm.config.visible == "gaussian":
        means = rbm.visible_bias + h @ rbm.weight
        exponents = h @ rbm.hidden_bias + 0.5 * means.square().sum(1) - 0.5 * rbm.visible_bias.square().sum()
        log_z = torch.logsumexp(exponents, 0) + 0.5 * data.shape[1] * torch.log(torch.tensor(2 * torch.pi))
    else:
        log_z = torch.logsumexp(-energy(rbm, states(rbm, length), h).flatten(), 0)
    return float((weights - log_z).mean())


def contrastive_divergence(rbm: RBM, v, steps: int = 1, generator: torch.Generator | None = None):
    """(gradient, reconstruction error) of CD-`steps`, both as means over the rows.

    The gradient, to be ascended, is v h' at the data minus v h' at the end of the chain; the error is the squared
    distance between a row and its mean reconstruction after one step.
    """
    chain = rbm.chain(v, steps, generator or torch.Generator().manual_seed(0))
    n = len(chain.visible)
    gradient = {
        "weight": chain.add_gradient(torch.zeros_like(rbm.weight), 0.0, 1 / n),
        "hidden_bias": chain.hidden_gradient() / n,
        "visible_bias": chain.visible_gradient() / n,
    }
    return gradient, float(chain.error) / n
