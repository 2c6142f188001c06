"""Walks, subgraphs, the least-visited schedule, distances: a stream of mini-batches of triple ids."""

from satkgc.sampling.batch import Batch, Needs
from satkgc.sampling.config import McmcConfig, SamplingConfig
from satkgc.sampling.make import make_sampler
from satkgc.sampling.mcmc import Vectors
from satkgc.sampling.proximity import ProximityRule, closeness, proximity
from satkgc.sampling.sampler import Sampler, State
from satkgc.sampling.stream import Stream

__all__ = [
    "Batch",
    "McmcConfig",
    "Needs",
    "ProximityRule",
    "Sampler",
    "SamplingConfig",
    "State",
    "Stream",
    "Vectors",
    "closeness",
    "make_sampler",
    "proximity",
]
