"""Where the packed forward finds its weights inside a transformers model: the very parameters, not copies."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor


class LayerWeights(NamedTuple):
    """Weights and biases of one post-norm transformer layer."""

    query: Tensor
    query_bias: Tensor
    key: Tensor
    key_bias: Tensor
    value: Tensor
    value_bias: Tensor
    out: Tensor
    out_bias: Tensor
    norm1: Tensor
    norm1_bias: Tensor
    up: Tensor
    up_bias: Tensor
    down: Tensor
    down_bias: Tensor
    norm2: Tensor
    norm2_bias: Tensor


KNOWN = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")


def supports(model: Any) -> bool:
    """Whether the packed forward computes what this model computes."""
    config = model.config
    plain = config.hidden_act == "gelu" and not getattr(config, "is_decoder", False)
    absolute = getattr(config, "position_embedding_type", None) in (None, "absolute")
    return plain and absolute and config.model_type in KNOWN


def first_position(model: Any) -> int:
    """The position id of a text's first token: the one after that of padding, where padding has one."""
    padding = getattr(getattr(getattr(model, "embeddings", None), "position_embeddings", None), "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def layer_weights(model: Any) -> list[LayerWeights]:
    """The parameters of every layer, in the order LayerWeights names them."""
    found = []
    for layer in model.encoder.layer:
        if model.config.model_type == "mpnet":
            attention = layer.attention.attn
            modules = [attention.q, attention.k, attention.v, attention.o, layer.attention.LayerNorm]
        else:
            attention = layer.attention.self
            output = layer.attention.output
            modules = [attention.query, attention.key, attention.value, output.dense, output.LayerNorm]
        modules += [layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm]
        found.append(LayerWeights(*(tensor for module in modules for tensor in (module.weight, module.bias))))
    return found


def position_bias(model: Any, length: int) -> Tensor | None:
    """MPNet's bias by relative position, which all its layers share; None for others.  # (heads, L, L)"""
    if model.config.model_type != "mpnet":
        return None
    import torch

    encoder = model.encoder
    at = torch.arange(length, device=encoder.relative_attention_bias.weight.device)
    buckets = encoder.relative_position_bucket(at[None, :] - at[:, None], num_buckets=32)
    bias: Tensor = encoder.relative_attention_bias(buckets).permute(2, 0, 1)
    return bias
