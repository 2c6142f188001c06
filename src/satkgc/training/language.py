"""Whether the encoder of a run was trained to read the language of the texts."""

from __future__ import annotations

from satkgc.kg import KnowledgeGraph, text_language
from satkgc.training.config import Config

ENGLISH = ("minilm", "bert-base-uncased", "sentence-transformers/all-MiniLM-L6-v2")  # backbones that read no other


def language_note(kg: KnowledgeGraph, config: Config) -> str | None:
    """A line on texts that the encoder was not trained to read."""
    encoders = [getattr(one.model, "encoder", None) for one in (config, *config.experts.values())]
    encoder = next((encoder for encoder in encoders if encoder is not None and encoder.backbone in ENGLISH), None)
    if encoder is None:
        return None
    language = text_language(kg)
    if language in (None, "English"):
        return None
    remedy = "--set model.encoder.backbone=NAME chooses another; for RDF, kg import --languages en takes English texts"
    return f"note: the texts look {language}, and the encoder {encoder.backbone} was trained on English; {remedy}"
