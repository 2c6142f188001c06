"""A post-norm transformer over packed tokens, on the very parameters of a transformers model.

The layers are one function, the unit that torch.compile sees. Attention is a fused kernel on a GPU, else torch's own on
a padded table, the one place that is padded.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from satkgc.models.text.packed import Packed

LONGEST = 128  # tokens of a text: the largest tile whose backward pass fits a GPU's registers


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


PACKED = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")


def supports(model: Any) -> bool:
    """Whether the packed forward computes what this model computes."""
    config = model.config
    if config.model_type not in PACKED:
        return False
    plain = config.hidden_act == "gelu" and not getattr(config, "is_decoder", False)
    return plain and getattr(config, "position_embedding_type", None) in (None, "absolute")


def first_position(model: Any) -> int:
    """The position id of a text's first token: the one after that of padding, where padding has one."""
    padding = getattr(getattr(getattr(model, "embeddings", None), "position_embeddings", None), "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def layer_weights(model: Any) -> list[LayerWeights]:
    """The parameters of every layer, in the order LayerWeights names them."""
    weights = []
    for layer in model.encoder.layer:
        if model.config.model_type == "mpnet":
            attention = layer.attention.attn
            modules = [attention.q, attention.k, attention.v, attention.o, layer.attention.LayerNorm]
        else:
            attention = layer.attention.self
            output = layer.attention.output
            modules = [attention.query, attention.key, attention.value, output.dense, output.LayerNorm]
        modules += [layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm]
        weights.append(LayerWeights(*(tensor for module in modules for tensor in (module.weight, module.bias))))
    return weights


def position_bias(model: Any, length: int) -> Tensor | None:
    """MPNet's bias by relative position, which all its layers share; None for others.  # (heads, L, L)"""
    if model.config.model_type != "mpnet":
        return None
    encoder = model.encoder
    at = torch.arange(length, device=encoder.relative_attention_bias.weight.device)
    buckets = encoder.relative_position_bucket(at[None, :] - at[:, None], num_buckets=32)
    bias: Tensor = encoder.relative_attention_bias(buckets).permute(2, 0, 1)
    return bias


class AttentionPlan(NamedTuple):
    """What the layers of one forward need to attend; made once, shared by all of them."""

    heads: int
    dropout: float  # 0 outside training
    width: int  # of the table, or of the fused kernel's tile
    fused: bool
    bias: (
        Tensor | None
    )  # table: (m, 1 or heads, 1 or L, L), what is added to scores; fused: (heads, tile, tile) or None
    slots: Tensor  # (T,)
    starts: Tensor  # (m + 1,)


def plan_attention(batch: Packed, model: Any, dropout: float, dtype: torch.dtype, kernel: str) -> AttentionPlan:
    """Choose the kernel, and lay out the position bias for it."""
    heads = model.config.num_attention_heads
    if kernel == "auto" and batch.width <= LONGEST and has_fused_kernel(batch.ids.device):
        from satkgc.models.text.fused_attention import tile  # also registers the operator that `attend` calls

        width = tile(batch.width)
        bias = position_bias(model, width)
        bias = None if bias is None else bias.float().contiguous()
        return AttentionPlan(heads, dropout, width, True, bias, batch.slots, batch.starts)
    mask = _mask(batch, position_bias(model, batch.width), dtype)
    return AttentionPlan(heads, dropout, batch.width, False, mask, batch.slots, batch.starts)


def has_fused_kernel(device: torch.device) -> bool:
    """Whether the fused kernel runs on this device."""
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def attend(qkv: Tensor, plan: AttentionPlan, seed: Tensor) -> Tensor:
    """(T, 3 * dim) queries, keys and values → (T, dim), each text attending to itself alone."""
    if plan.fused:
        kernel = torch.ops.satkgc.packed_attention
        out: Tensor = kernel(qkv, plan.starts, plan.bias, seed, plan.heads, plan.width, plan.dropout)
        return out
    texts, dim = len(plan.starts) - 1, qkv.shape[1] // 3
    table = qkv.new_zeros(texts * plan.width, 3 * dim).index_copy(0, plan.slots, qkv)
    split = table.view(texts, plan.width, 3, plan.heads, dim // plan.heads)
    q, k, v = split.permute(2, 0, 3, 1, 4)  # each (m, heads, L, dim / heads)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=plan.bias, dropout_p=plan.dropout)
    return out.transpose(1, 2).reshape(texts * plan.width, dim).index_select(0, plan.slots)


def _mask(batch: Packed, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """What is added to the scores: minus infinity past a text's end, plus the position bias; once for all layers."""
    lengths = batch.starts.diff()
    inside = torch.arange(batch.width, device=lengths.device) < lengths[:, None]  # (m, L)
    if bias is None:
        return inside[:, None, None, :]  # (m, 1, 1, L) bool
    outside = torch.zeros(inside.shape, dtype=dtype, device=lengths.device).masked_fill(~inside, float("-inf"))
    return bias.to(dtype) + outside[:, None, None, :]  # (m, heads, L, L)


def transformer_layer(
    x: Tensor,  # (T, dim)
    weights: LayerWeights,
    plan: AttentionPlan,
    eps: float,
    dropout: float,  # 0 outside training
    seed: Tensor,  # (3,) int32: one stream of dropout masks each
) -> Tensor:
    """Attention and feed-forward, each with dropout, residual and layer norm, in x's precision."""
    w = weights
    qkv_weight = torch.cat([w.query, w.key, w.value]).to(x.dtype)
    qkv_bias = torch.cat([w.query_bias, w.key_bias, w.value_bias]).to(x.dtype)
    attended = attend(functional.linear(x, qkv_weight, qkv_bias), plan, seed[2])
    attended = functional.linear(attended, w.out.to(x.dtype), w.out_bias.to(x.dtype))
    x = _add_norm(x, attended, w.norm1, w.norm1_bias, eps, dropout, seed[0])
    inner = functional.gelu(functional.linear(x, w.up.to(x.dtype), w.up_bias.to(x.dtype)))
    inner = functional.linear(inner, w.down.to(x.dtype), w.down_bias.to(x.dtype))
    return _add_norm(x, inner, w.norm2, w.norm2_bias, eps, dropout, seed[1])


def _add_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, eps: float, dropout: float, seed: Tensor) -> Tensor:
    total = x.float() + drop(y.float(), dropout, seed)
    return functional.layer_norm(total, (x.shape[-1],), weight, bias, eps).to(x.dtype)


def drop(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Dropout. Compiled, the mask is a hash of seed and place: it fuses, is recomputed rather than kept for the
    backward pass, and comes out the same with and without gradients, which gradient caching rests on."""
    if p == 0:
        return x
    if not torch.compiler.is_compiling():
        return functional.dropout(x, p)
    place = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    return torch.where(scramble(place, seed) >= threshold(p), x / (1 - p), 0.0)


def scramble(place: Tensor, seed: Tensor) -> Tensor:
    """A number for each int32, all equally frequent; products wrap. It is cheap, as a step takes 10^10 of them."""
    # The seed comes first: a product of a place alone is index arithmetic to the compiler, which overflows it.
    x = (place ^ seed) * -1640531535  # 2^32 / golden ratio, odd
    x = (x ^ (x >> 15)) + seed  # again, or near seeds would give each other's numbers in another order
    x = x * 0x7FEB352D
    return (x ^ (x >> 15)) * -2073254261


def threshold(p: float) -> int:
    """A share p of the numbers that `scramble` gives are smaller."""
    return int(p * 2**32) - 2**31
