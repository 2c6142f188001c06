"""Walks, subgraphs, the least-visited schedule, distances: a stream of mini-batches of triple ids."""

from satkgc.sampling.batch import Batch, Sampler
from satkgc.sampling.config import McmcConfig, SamplingConfig
from satkgc.sampling.make import make_sampler
from satkgc.sampling.stream import Stream

__all__ = ["Batch", "McmcConfig", "Sampler", "SamplingConfig", "Stream", "make_sampler"]
