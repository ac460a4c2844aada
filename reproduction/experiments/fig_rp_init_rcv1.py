"""Curves of autoencoders of RCV1 (Reuters stands in) whose RBMs start as random projections."""

from reproduction.experiments.document_sets import IN_PLACE
from reproduction.experiments.rbm_starts import curves_of, little_effect

EXPERIMENT = curves_of("fig:rp_init_rcv1", "reuters", "Reuters", "RCV1", (little_effect("Reuters"),), IN_PLACE)
