"""RANDOM: triples without replacement, as SimKGC and the other baselines draw them."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.batch import Needs
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.mcmc import Vectors
from satkgc.sampling.philox import PERMUTE, shuffle
from satkgc.sampling.sampler import Sampler


class RandomSampler(Sampler):
    """Each pass over the training set is a fresh permutation cut into batches; a remainder shorter than a batch is
    left out of that pass. The first triple of a batch stands in as its centre, so that distances have an origin.
    """

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: SamplingConfig,
        seed: int,
        needs: Needs = Needs(),
        vectors: Vectors | None = None,
    ) -> None:
        super().__init__(kg, config, seed, needs, vectors)
        self._pass = -1
        self._order: Int32 = np.empty(0, np.int32)

    def triples(self, step: int) -> Int32:
        """The next piece of the pass at hand."""
        size = self.config.triples
        number, place = divmod(step, len(self.kg.train) // size)
        if number != self._pass:
            self._order = np.arange(len(self.kg.train), dtype=np.int32)
            shuffle(self._order, len(self._order), self.seed, PERMUTE, number)
            self._pass = number
        return self._order[place * size : (place + 1) * size].copy()
