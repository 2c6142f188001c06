"""The models by name."""

from __future__ import annotations

from satkgc.models.embeddings import EmbeddingModel
from satkgc.models.fused import FusedModel
from satkgc.models.model import Model
from satkgc.models.paths import PathModel
from satkgc.models.star import StarModel
from satkgc.models.text import FrozenModel, TextModel

MODELS: dict[str, type[Model]] = {
    "embedding": EmbeddingModel,
    "frozen": FrozenModel,
    "fused": FusedModel,
    "paths": PathModel,
    "star": StarModel,
    "text": TextModel,
}
"""Every kind of model, by the name that `model.kind` has in a recipe. A new one is one file, and one line here."""
