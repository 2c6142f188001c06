"""Embedding models: TransE, DistMult, ComplEx, RotatE, TuckER, CompoundE."""

from satkgc.models.embeddings.model import INTERACTIONS, EmbeddingConfig, EmbeddingModel

__all__ = ["INTERACTIONS", "EmbeddingConfig", "EmbeddingModel"]
