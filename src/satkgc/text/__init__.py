"""Entities and queries put into words, tokenised once, and laid out as batches of token arrays."""

from satkgc.text.config import TextConfig
from satkgc.text.texts import Texts, Tokens
from satkgc.text.tokens import TokenBatch

__all__ = ["TextConfig", "Texts", "TokenBatch", "Tokens"]
