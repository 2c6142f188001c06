"""Finding one's device, and being alone."""

from __future__ import annotations

import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.training.ranks import Ranks


def test_alone_everything_is_ones_own():
    ranks = Ranks()
    mine = torch.randn(3, 2)
    assert ranks.first
    assert ranks.gather(mine, [3]) is mine
    assert ranks.any(True)
    assert not ranks.any(False)
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.full((2,), 3.0)
    ranks.sum_gradients([parameter], share=0.5)
    assert parameter.grad.tolist() == [3.0, 3.0]


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Ranks.join("auto").device == Ranks.join("cpu").device == torch.device("cpu")
    with pytest.raises(SatkgcError, match=r"the device is 'cuda:0', and no GPU was found"):
        Ranks.join("cuda")
    with pytest.raises(SatkgcError, match=r"unknown device 'toaster'; set it to auto, cpu or cuda"):
        Ranks.join("toaster")
