"""Walks, subgraphs, the least-visited schedule, distances: a stream of mini-batches of triple ids."""

from satkgc.sampling.batch import Batch
from satkgc.sampling.config import McmcConfig, SamplingConfig
from satkgc.sampling.make import make_sampler
from satkgc.sampling.mcmc import Vectors
from satkgc.sampling.proximity import ProximityRule, closeness, proximity
from satkgc.sampling.sampler import Sampler
from satkgc.sampling.stream import Stream

__all__ = [
    "Batch",
    "McmcConfig",
    "ProximityRule",
    "Sampler",
    "SamplingConfig",
    "Stream",
    "Vectors",
    "closeness",
    "make_sampler",
    "proximity",
]
