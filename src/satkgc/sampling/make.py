"""From settings to a sampler."""

from __future__ import annotations

from satkgc.kg import KnowledgeGraph
from satkgc.sampling.batch import Sampler
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.random_batches import RandomSampler
from satkgc.sampling.saam import SaamSampler
from satkgc.sampling.walk import WalkSubgraphs


def make_sampler(kg: KnowledgeGraph, config: SamplingConfig, seed: int) -> Sampler:
    """The sampler that `config.sampler` names."""
    if config.sampler == "random":
        return RandomSampler(kg, config, seed)
    return SaamSampler(kg, config, seed, WalkSubgraphs(kg, config, seed))
