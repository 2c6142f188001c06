"""The samplers by name."""

from __future__ import annotations

from satkgc.kg import KnowledgeGraph
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.mcmc import McmcSampler
from satkgc.sampling.sampler import Needs, RandomSampler, Sampler, SamplingVectors
from satkgc.sampling.walk import WalkSampler

# A new sampler is one file with its class, and one line here: see `Sampler`.
SAMPLERS: dict[str, type[Sampler]] = {
    "brwr": WalkSampler,
    "rwr": WalkSampler,
    "brwr_p": WalkSampler,
    "mcmc": McmcSampler,
    "random": RandomSampler,
}


def make_sampler(
    kg: KnowledgeGraph,
    config: SamplingConfig,
    seed: int,
    needs: Needs = Needs(),
    vectors: SamplingVectors | None = None,
) -> Sampler:
    """The sampler that `config.sampler` names; `vectors` are those of the model in training, for the ones that ask."""
    return SAMPLERS[config.sampler](kg, config, seed, needs, vectors)
