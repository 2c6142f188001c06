"""Models that score answers: the interface, the registry, and one folder or file a kind."""

from satkgc.models.model import (
    Fact,
    Metrics,
    Model,
    NewEntityText,
    Questions,
    StepContext,
    VectorModel,
    step_seed,
)
from satkgc.models.text import (
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
    sha256,
)

MODELS: dict[str, type[Model]] = {"text": TextModel}
"""Every kind of model, by the name that `model.kind` has in a recipe."""

ModelConfig = TextModelConfig  # the settings of any of them

__all__ = [
    "MODELS",
    "ContrastiveLoss",
    "EncoderConfig",
    "Fact",
    "LossConfig",
    "Metrics",
    "Model",
    "ModelConfig",
    "NewEntityText",
    "Pooling",
    "Questions",
    "StepContext",
    "TextModel",
    "TextModelConfig",
    "Towers",
    "VectorModel",
    "load_tokenizer",
    "pool_padded",
    "quiet",
    "sha256",
    "step_seed",
]
