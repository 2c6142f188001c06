"""Two text encoders and their contrastive loss: SATKGC, SimKGC and our own recipes."""

from satkgc.models.text.config import EncoderConfig
from satkgc.models.text.frequency import answer_counts, frequency_weights
from satkgc.models.text.loss import Objective, Relations
from satkgc.models.text.loss_config import ObjectiveConfig
from satkgc.models.text.masks import answer_pairs, known_pairs
from satkgc.models.text.store import model_checksum
from satkgc.models.text.towers import Towers

__all__ = [
    "EncoderConfig",
    "Objective",
    "ObjectiveConfig",
    "Relations",
    "Towers",
    "answer_counts",
    "answer_pairs",
    "frequency_weights",
    "known_pairs",
    "model_checksum",
]
