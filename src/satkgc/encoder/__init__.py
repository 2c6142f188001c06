"""The two towers: language models that turn token arrays into vectors."""

from satkgc.encoder.config import EncoderConfig
from satkgc.encoder.packed import Packed
from satkgc.encoder.store import model_checksum
from satkgc.encoder.towers import Towers

__all__ = ["EncoderConfig", "Packed", "Towers", "model_checksum"]
