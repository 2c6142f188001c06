"""One tower: a language model over packed tokens where it can, over padded ones where it must, and its pooling."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch._functorch import config as compiling
from torch.nn import functional

from satkgc.errors import SatkgcError
from satkgc.models.text.config import EncoderConfig, Pooling
from satkgc.models.text.packed import Packed
from satkgc.models.text.transformer import (
    AttentionPlan,
    drop,
    first_position,
    layer_weights,
    plan_attention,
    supports,
    transformer_layer,
)
from satkgc.text import TokenBatch

# What compiled layers keep for the backward pass, as a share of all they could: with this the results of GELU, dropout
# and layer norms are computed again, which is cheap, and those of matrix products kept.
KEPT = 0.9


class Tower(nn.Module):
    """Texts to vectors, of any length; a pure function of the batch and torch's random state."""

    def __init__(self, model: Any, config: EncoderConfig, pad_id: int) -> None:
        super().__init__()
        self.model = model
        self.pooling = config.pooling
        self.pad_id = pad_id
        self.packed = config.forward == "packed" and supports(model)
        self._first = first_position(model)
        self._layer = (
            transformer_layer if config.compile == "off" else torch.compile(transformer_layer)
        )  # compiled when first called
        self.attention = config.attention
        self.compile_when = config.compile

    def pack(self, batch: TokenBatch) -> Packed:
        """The batch as tensors, ready to be copied to the tower's device; for a prefetch thread."""
        longest, limit = int(batch.lengths.max(initial=0)), self._longest()
        if longest > limit:
            what = f"a text of {longest} tokens, but the backbone reads {limit}"
            raise SatkgcError(what, remedy=f"set model.text.max_tokens to {limit} or less")
        if self.model.device.type != "cuda":
            return Packed.of(batch)
        # Kernels like even numbers: of tokens for matrix products, of places in a text for torch's attention.
        return (Packed.of(batch, round_tokens=256, round_width=8) if self.packed else Packed.of(batch)).pin()

    def forward(self, batch: TokenBatch | Packed) -> Tensor:
        """Encode texts; differentiable.  # (n, dim) float32"""
        packed = self.pack(batch) if isinstance(batch, TokenBatch) else batch
        device = self.model.device
        packed = packed.to(device, non_blocking=True)
        # The fused kernel runs on the GPU that is current, which need not be the tower's.
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            if self.packed:
                return pool_packed(self._forward_packed(packed), packed, self.pooling)
            return self._forward_padded(packed)

    def _forward_packed(self, batch: Packed) -> Tensor:
        """The transformer over the tokens alone.  # (T, dim)"""
        model, config, device = self.model, self.model.config, self.model.device
        autocast = torch.is_autocast_enabled(device.type)
        dtype = torch.get_autocast_dtype(device.type) if autocast else torch.float32
        dropout = config.hidden_dropout_prob if self.training else 0.0
        with torch.autocast(device.type, enabled=False):  # precision is chosen here, op by op
            attention_dropout = config.attention_probs_dropout_prob if self.training else 0.0
            plan = plan_attention(batch, model, attention_dropout, dtype, self.attention)
            layers = layer_weights(model)
            seeds = torch.zeros(len(layers) + 1, 3, dtype=torch.int32, device=device)
            if self.training:
                seeds.random_()
            x = self._embed(batch, dropout, seeds[-1, 0]).to(dtype)
            compiled = self.compile_when == "on" or (
                self.compile_when == "auto" and self.training and device.type == "cuda"
            )
            layer = self._layer if compiled else transformer_layer
            with compiling.patch(activation_memory_budget=KEPT) if compiled else nullcontext():
                for weights, seed in zip(layers, seeds, strict=False):
                    if compiled:
                        _mark_dynamic(x, plan)
                    x = layer(x, weights, plan, config.layer_norm_eps, dropout, seed)
        return x

    def _embed(self, batch: Packed, dropout: float, seed: Tensor) -> Tensor:
        parts = self.model.embeddings
        x = functional.embedding(batch.ids, parts.word_embeddings.weight)
        x = x + functional.embedding(batch.positions + self._first, parts.position_embeddings.weight)
        if hasattr(parts, "token_type_embeddings"):
            types = torch.zeros_like(batch.ids) if batch.types is None else batch.types
            x = x + functional.embedding(types, parts.token_type_embeddings.weight)
        return drop(parts.LayerNorm(x), dropout, seed)

    def _forward_padded(self, batch: Packed) -> Tensor:
        """The library's own forward, for architectures the packed one does not know."""
        inside = batch.slots.new_zeros(len(batch) * batch.width, dtype=torch.bool)
        slots = batch.slots[: batch.tokens]
        inside = inside.index_fill(0, slots, True).view(len(batch), batch.width)

        def table(values: Tensor, empty: int) -> Tensor:
            flat = values.new_full((inside.numel(),), empty)
            return flat.index_copy(0, slots, values[: batch.tokens]).view(inside.shape)

        inputs = {"input_ids": table(batch.ids, self.pad_id), "attention_mask": inside.long()}
        if batch.types is not None:
            inputs["token_type_ids"] = table(batch.types, 0)
        return pool_padded(self.model(**inputs).last_hidden_state, inside, self.pooling)

    def _longest(self) -> int:
        limit = int(getattr(self.model.config, "max_position_embeddings", 0)) or 1 << 30
        return limit - self._first


def _mark_dynamic(x: Tensor, plan: AttentionPlan) -> None:
    """Tell the compiler which sizes change from batch to batch, so that it compiles once."""
    for tensor in (x, plan.slots, plan.starts, *(() if plan.fused or plan.bias is None else (plan.bias,))):
        torch._dynamo.maybe_mark_dynamic(tensor, 0)


def pool_packed(hidden: Tensor, batch: Packed, pooling: Pooling) -> Tensor:
    """(T, dim) packed token vectors → (n, dim), float32."""
    starts = batch.starts[: batch.count + 1].long()
    if pooling == "cls":
        pooled = hidden.index_select(0, starts[:-1]).float()
    else:
        real = hidden[: batch.tokens].float()  # without the made-up texts
        pooled = torch.segment_reduce(real, pooling, offsets=starts, axis=0, unsafe=True)
    return pooled


def pool_padded(hidden: Tensor, inside: Tensor, pooling: Pooling) -> Tensor:
    """(n, L, dim) padded token vectors and an (n, L) mask → (n, dim), float32."""
    hidden, inside = hidden.float(), inside[:, :, None]
    if pooling == "cls":
        pooled = hidden[:, 0]
    elif pooling == "max":
        pooled = hidden.masked_fill(~inside, -torch.inf).amax(1)
    else:
        pooled = (hidden * inside).sum(1) / inside.sum(1)
    return pooled
