"""The update of all states after a layer's aggregation, in one kernel on a GPU."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


def update(states: Tensor, own: Tensor, parts: Tensor, scale: Tensor, norm: nn.LayerNorm) -> Tensor:
    """States plus what follows from each node's own state and from what it received.

    # states, own (N, B, D), parts (N, B, 3, D): plain, times log-degree, by log-degree; scale (N,) → (N, B, D)
    """
    from satkgc.models.paths.gpu_kernels import Update

    return Update.apply(states, own, parts, scale, norm.weight, norm.bias, norm.eps)  # type: ignore[no-untyped-call]


def update_plain(states: Tensor, own: Tensor, parts: Tensor, scale: Tensor, norm: nn.LayerNorm) -> Tensor:
    """The same in PyTorch's own words."""
    scale = scale[:, None, None].to(parts.dtype)
    change = own + parts[:, :, 0] + scale * parts[:, :, 1] + parts[:, :, 2] / scale.clamp(min=0.01)
    return states + functional.relu(norm(change)).to(states.dtype)
