"""Models that read texts: two encoders and their contrastive loss (SATKGC, SimKGC and our own recipes), or one that is
kept frozen."""

from satkgc.models.text.backbone import load_tokenizer, quiet
from satkgc.models.text.config import EncoderConfig, EncoderModelConfig, LossConfig, Pooling, TextModelConfig
from satkgc.models.text.encoder_model import EncoderModel, TextReader
from satkgc.models.text.frozen import FrozenConfig, FrozenModel
from satkgc.models.text.loss import NEGATIVES_OVER, ContrastiveLoss
from satkgc.models.text.model import TextModel
from satkgc.models.text.tower import pool_padded
from satkgc.models.text.towers import Towers

__all__ = [
    "NEGATIVES_OVER",
    "ContrastiveLoss",
    "EncoderConfig",
    "EncoderModel",
    "EncoderModelConfig",
    "FrozenConfig",
    "FrozenModel",
    "LossConfig",
    "Pooling",
    "TextModel",
    "TextModelConfig",
    "TextReader",
    "Towers",
    "load_tokenizer",
    "pool_padded",
    "quiet",
]
