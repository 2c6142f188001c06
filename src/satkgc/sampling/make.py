"""From settings to a sampler."""

from __future__ import annotations

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.batch import Needs
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.mcmc import McmcSubgraphs, Vectors
from satkgc.sampling.random_batches import RandomSampler
from satkgc.sampling.saam import SaamSampler
from satkgc.sampling.sampler import Sampler
from satkgc.sampling.walk import WalkSubgraphs


def make_sampler(
    kg: KnowledgeGraph,
    config: SamplingConfig,
    seed: int,
    needs: Needs = Needs(),
    vectors: Vectors | None = None,
) -> Sampler:
    """The sampler that `config.sampler` names; `vectors` of the model in training are for "mcmc" alone."""
    if config.sampler == "random":
        return RandomSampler(kg, config, seed, needs)
    if config.sampler != "mcmc":
        return SaamSampler(kg, config, seed, needs, WalkSubgraphs(kg, config, seed))
    if vectors is None:
        raise SatkgcError('sampling.sampler = "mcmc" needs the vectors of a model', remedy="choose another sampler")
    return SaamSampler(kg, config, seed, needs, McmcSubgraphs(kg, config, seed, vectors))
