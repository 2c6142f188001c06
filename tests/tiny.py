"""Random language models of two narrow layers, one of each family, all with one small tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from satkgc.text import TokenBatch

SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
FAMILIES = ["bert", "roberta", "mpnet", "deberta-v2"]
# DeBERTa's attention is by relative positions; v3's buckets them, and shares projections.
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "max_relative_positions": -1}
BUCKETS = {"position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False}
OTHERS = {  # other architectures, by the name of the library's configuration and its own settings
    "deberta": ("deberta", {"type_vocab_size": 0, **RELATIVE}),
    "deberta-v3": ("deberta-v2", {"type_vocab_size": 0, **RELATIVE, **BUCKETS}),
    "modernbert": (
        "modernbert",
        {"global_attn_every_n_layers": 2, "local_attention": 8, "bos_token_id": 2, "eos_token_id": 3}
        | {"cls_token_id": 2, "sep_token_id": 3},
    ),
}


def save_tiny(family: str, tokenizer_folder: Path, folder: Path) -> Path:
    """Write a random model of a family; its biases and norms are not the zeros and ones a fresh model has."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    kind, extra = OTHERS.get(family, (family, {"type_vocab_size": 2} if family != "roberta" else {}))
    size = {"vocab_size": len(tokenizer) + 3, "max_position_embeddings": 72}
    config = AutoConfig.for_model(kind, pad_token_id=1 if family == "roberta" else 0, **SHAPE, **size, **extra)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModel.from_config(config)
        for name, parameter in model.named_parameters():
            spread = 0.5 if "relative_attention_bias" in name else 0.1
            torch.nn.init.normal_(parameter, mean=float("Norm.weight" in name), std=spread)
    model.save_pretrained(folder)
    if family == "modernbert":
        inputs = ["input_ids", "attention_mask"]  # it has no segments; saved is what is in both
        tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = inputs
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
