"""Models made of arrays: their vectors are given."""

from __future__ import annotations

import numpy as np
import torch
from by_hand import unit_vectors

from satkgc.models import VectorModel
from satkgc.settings import Settings


class ArrayModel(VectorModel):
    """A model whose vectors are given: of entities (E, d), and of (entity, directed relation) pairs (E, 2R, d)."""

    device = torch.device("cpu")

    def __init__(self, kg, entities, queries):
        super().__init__(kg, Settings())
        self.entities, self.queries = entities, queries

    @property
    def dim(self):
        return self.entities.shape[1]

    def loss(self, batch):
        raise NotImplementedError

    def encode_entities(self, entities, new=(), *, progress=False):
        return self.entities[entities]

    def encode_questions(self, questions, *, progress=False):
        return self.queries[questions.entities, questions.relations]


def random_model(kg, seed, dim=8):
    """Unit vectors at random."""
    rng = np.random.default_rng(seed)
    entities = unit_vectors(rng, kg.num_entities, dim)
    queries = unit_vectors(rng, kg.num_entities * 2 * kg.num_relations, dim)
    return ArrayModel(kg, entities, queries.reshape(kg.num_entities, -1, dim))
