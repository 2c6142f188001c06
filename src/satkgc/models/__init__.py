"""Models that score answers: the interface, the registry, and one folder or file a kind."""

from satkgc.models.embeddings import INTERACTIONS, EmbeddingConfig, EmbeddingModel
from satkgc.models.fused import FUSION, FusedConfig, FusedModel, Mixture, fill, mix
from satkgc.models.model import (
    Fact,
    Metrics,
    Model,
    ModelConfig,
    NewEntityText,
    Questions,
    StepContext,
    VectorModel,
    step_seed,
)
from satkgc.models.paths import PathConfig, PathModel, strongest_paths
from satkgc.models.registry import MODELS
from satkgc.models.text import (
    NEGATIVES_OVER,
    ContrastiveLoss,
    EncoderConfig,
    LossConfig,
    Pooling,
    TextModel,
    TextModelConfig,
    Towers,
    load_tokenizer,
    pool_padded,
    quiet,
)

__all__ = [
    "FUSION",
    "INTERACTIONS",
    "MODELS",
    "NEGATIVES_OVER",
    "ContrastiveLoss",
    "EmbeddingConfig",
    "EmbeddingModel",
    "EncoderConfig",
    "Fact",
    "FusedConfig",
    "FusedModel",
    "LossConfig",
    "Metrics",
    "Mixture",
    "Model",
    "ModelConfig",
    "NewEntityText",
    "PathConfig",
    "PathModel",
    "Pooling",
    "Questions",
    "StepContext",
    "TextModel",
    "TextModelConfig",
    "Towers",
    "VectorModel",
    "fill",
    "load_tokenizer",
    "mix",
    "pool_padded",
    "quiet",
    "step_seed",
    "strongest_paths",
]
