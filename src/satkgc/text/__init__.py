"""Entities and queries put into words, tokenised once, and laid out as batches of token arrays."""

from satkgc.text.config import TextConfig
from satkgc.text.texts import Texts, Tokens
from satkgc.text.tokens import TokenBatch
from satkgc.text.wording import full_text, relation_label, relation_text

__all__ = ["TextConfig", "Texts", "TokenBatch", "Tokens", "full_text", "relation_label", "relation_text"]
