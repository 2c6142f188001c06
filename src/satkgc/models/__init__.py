"""Models that score answers: the interface, the registry, and one folder or file a kind."""

from satkgc.models.embeddings import INTERACTIONS, EmbeddingConfig, EmbeddingModel
from satkgc.models.fused import FUSION, FusedConfig, FusedModel
from satkgc.models.mixture import Mixture, fill, parts_of_sum, silence
from satkgc.models.model import (
    Fact,
    Metrics,
    Model,
    ModelConfig,
    NewEntityText,
    Questions,
    StepContext,
    step_seed,
)
from satkgc.models.paths import PathConfig, PathModel, strongest_paths
from satkgc.models.registry import MODELS
from satkgc.models.rejections import Rejections
from satkgc.models.star import StarConfig, StarModel
from satkgc.models.text import (
    NEGATIVES_OVER,
    ContrastiveLoss,
    EncoderConfig,
    EncoderModel,
    EncoderModelConfig,
    FrozenConfig,
    FrozenModel,
    LossConfig,
    Pooling,
    TextModel,
    TextModelConfig,
    TextReader,
    Towers,
    load_tokenizer,
    pool_padded,
    quiet,
)
from satkgc.models.vector_model import LEAST_COSINE, VectorModel

__all__ = [
    "FUSION",
    "INTERACTIONS",
    "LEAST_COSINE",
    "MODELS",
    "NEGATIVES_OVER",
    "ContrastiveLoss",
    "EmbeddingConfig",
    "EmbeddingModel",
    "EncoderConfig",
    "EncoderModel",
    "EncoderModelConfig",
    "Fact",
    "FrozenConfig",
    "FrozenModel",
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
    "Rejections",
    "StarConfig",
    "StarModel",
    "StepContext",
    "TextModel",
    "TextModelConfig",
    "TextReader",
    "Towers",
    "VectorModel",
    "fill",
    "load_tokenizer",
    "parts_of_sum",
    "pool_padded",
    "quiet",
    "silence",
    "step_seed",
    "strongest_paths",
]
