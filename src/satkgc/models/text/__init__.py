"""Two text encoders and their contrastive loss: SATKGC, SimKGC and our own recipes."""

from satkgc.models.text.backbone import load_tokenizer, quiet
from satkgc.models.text.config import EncoderConfig, LossConfig, Pooling, TextModelConfig
from satkgc.models.text.loss import NEGATIVES_OVER, ContrastiveLoss
from satkgc.models.text.model import TextModel
from satkgc.models.text.tower import pool_padded
from satkgc.models.text.towers import Towers

__all__ = [
    "NEGATIVES_OVER",
    "ContrastiveLoss",
    "EncoderConfig",
    "LossConfig",
    "Pooling",
    "TextModel",
    "TextModelConfig",
    "Towers",
    "load_tokenizer",
    "pool_padded",
    "quiet",
]
