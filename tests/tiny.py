"""Random language models of two narrow layers, one of each family, all with one small tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from satkgc.text import TokenBatch

SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
FAMILIES = ["bert", "roberta", "mpnet", "deberta-v2"]


def save_tiny(family: str, tokenizer_folder: Path, folder: Path) -> Path:
    """Write a random model of a family; its biases and norms are not the zeros and ones a fresh model has."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    extra: dict[str, Any] = {"type_vocab_size": 2} if family != "roberta" else {}
    size = {"vocab_size": len(tokenizer) + 3, "max_position_embeddings": 72}
    config = AutoConfig.for_model(family, pad_token_id=1 if family == "roberta" else 0, **SHAPE, **size, **extra)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModel.from_config(config)
        for name, parameter in model.named_parameters():
            spread = 0.5 if "relative_attention_bias" in name else 0.1
            torch.nn.init.normal_(parameter, mean=float("Norm.weight" in name), std=spread)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def random_batch(
    texts: int = 9, longest: int = 20, seed: int = 0, types: bool = True, vocabulary: int = 90
) -> TokenBatch:
    """Sequences of random tokens and lengths, the first of one token and the last of the longest."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, texts)
    lengths[0], lengths[-1] = 1, longest
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = rng.integers(5, vocabulary, ptr[-1]).astype(np.int32)
    return TokenBatch(ids, ptr, rng.integers(0, 2, ptr[-1]).astype(np.uint8) if types else None)
