"""Which training triples make a step: at random, or subgraphs of least-visited triples; a stream of batches of ids."""

from satkgc.sampling.config import McmcConfig, SamplingConfig
from satkgc.sampling.registry import SAMPLERS, make_sampler
from satkgc.sampling.saam import SubgraphSampler
from satkgc.sampling.sampler import Batch, Needs, Sampler, SamplerState, SamplingVectors
from satkgc.sampling.statistics import Occurrences, gini, plot_occurrences
from satkgc.sampling.stream import Stream

__all__ = [
    "SAMPLERS",
    "Batch",
    "McmcConfig",
    "Needs",
    "Occurrences",
    "Sampler",
    "SamplerState",
    "SamplingConfig",
    "SamplingVectors",
    "Stream",
    "SubgraphSampler",
    "gini",
    "make_sampler",
    "plot_occurrences",
]
