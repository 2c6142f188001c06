"""Finding one's device, and being alone."""

from __future__ import annotations

import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.processes import GradientSum, Processes


def test_alone_everything_is_ones_own():
    processes = Processes()
    mine = torch.randn(3, 2)
    assert processes.first
    assert processes.gather(mine, [3]) is mine
    assert processes.any(True)
    assert not processes.any(False)
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.full((2,), 3.0)
    GradientSum(processes, [parameter], share=0.5).finish()
    assert parameter.grad.tolist() == [3.0, 3.0]


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Processes.join("auto").device == Processes.join("cpu").device == torch.device("cpu")
    with pytest.raises(SatkgcError, match=r"the device is 'cuda:0', and no GPU was found"):
        Processes.join("cuda")
    with pytest.raises(SatkgcError, match=r"unknown device 'toaster'; set it to auto, cpu or cuda"):
        Processes.join("toaster")


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_each_process_has_a_gpu_of_its_own(device, monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    # There is no GPU to choose here, but torch's own reading of what it is given runs.
    monkeypatch.setattr(torch.cuda, "set_device", lambda one: chosen.append(torch.cuda._utils._get_device_index(one)))
    assert Processes.join(device).device == torch.device("cuda:0")
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert Processes.join(device).device == torch.device("cuda:3")
    assert Processes.join("cuda:1").device == torch.device("cuda:1")
    assert chosen == [0, 3, 1]
    with pytest.raises(SatkgcError, match=r"the device is 'cuda:4', and there are 4 GPUs; choose a lower number"):
        Processes.join("cuda:4")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # a launcher may show each process its own alone
    assert Processes.join(device).device == torch.device("cuda:0")
