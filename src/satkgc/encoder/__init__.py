"""The two towers: language models that turn token arrays into vectors."""

from satkgc.encoder.config import EncoderConfig
from satkgc.encoder.store import load_towers, model_checksum, save_towers
from satkgc.encoder.towers import Towers

__all__ = ["EncoderConfig", "Towers", "load_towers", "model_checksum", "save_towers"]
