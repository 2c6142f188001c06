"""Several processes, one global batch: the few places where ranks speak to one another."""

from __future__ import annotations

import atexit
import datetime
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor, nn

from satkgc.errors import SatkgcError

BUCKET = 1 << 24  # elements of gradient sent at once: 64 MiB


def find_device(name: str) -> torch.device:
    """A device by name; "auto" is the GPU if there is one, and under torchrun each process has a GPU of its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":  # some of torch's calls want the number as well
        name = f"cuda:{os.environ.get('LOCAL_RANK', 0) if torch.cuda.device_count() > 1 else 0}"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SatkgcError(f"unknown device {name!r}", remedy="set it to auto, cpu or cuda") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SatkgcError(f"the device is {name!r}, and no GPU was found", remedy="set it to cpu")
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        what = f"the device is {name!r}, and there {'is one GPU' if count == 1 else f'are {count} GPUs'}"
        raise SatkgcError(what, remedy="choose a lower number, or start fewer processes")
    return device


@dataclass(frozen=True)
class Processes:
    """This process among those that `torchrun` started; alone, every method returns what it was given."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @classmethod
    def join(cls, device: str) -> Processes:
        """Find this process's device and, under torchrun, the other processes."""
        world, chosen = int(os.environ.get("WORLD_SIZE", 1)), find_device(device)
        if chosen.type == "cuda":
            torch.cuda.set_device(chosen)
        if world > 1 and not dist.is_initialized():
            # Others wait while the first fits a mixture or writes, which takes long on a large graph.
            wait = datetime.timedelta(hours=6)
            dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=wait)
            if chosen.type != "cuda":  # gloo's threads abort a process that ends around them, now and then
                atexit.register(_leave)
        return cls(dist.get_rank() if world > 1 else 0, world, chosen)

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and speaks."""
        return self.rank == 0

    def share(self, size: int) -> slice:
        """The rows that are this rank's, of so many; the ranks' shares lie one after the other."""
        return slice(size * self.rank // self.world, size * (self.rank + 1) // self.world)

    def gather_shares(self, mine: Tensor, size: int) -> Tensor:
        """All `size` rows, of which every rank gives its share.  # (rows, D) → (size, D)"""
        cuts = [size * rank // self.world for rank in range(self.world + 1)]
        return self.gather(mine, [stop - start for start, stop in pairwise(cuts)])

    def sum(self, mine: Tensor) -> Tensor:
        """The sum over ranks, of tensors of one shape; it takes the tensor's place."""
        if self.world > 1:
            dist.all_reduce(mine)
        return mine

    def gather(self, mine: Tensor, sizes: Sequence[int]) -> Tensor:
        """The rows of all ranks, rank after rank; `sizes` are their numbers of rows.  # (rows, D) → (Σ sizes, D)"""
        if self.world == 1:
            return mine
        padded = mine.new_zeros(max(sizes), *mine.shape[1:])
        padded[: len(mine)] = mine
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    def sum_gradients(self, parameters: Iterable[nn.Parameter], share: float = 1.0) -> None:
        """Add up `share` times the gradients of all ranks, many tensors at a time."""
        if self.world == 1:
            return
        bucket: list[Tensor] = []
        for parameter in (p for p in parameters if p.requires_grad):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            bucket.append(parameter.grad)
            if sum(grad.numel() for grad in bucket) >= BUCKET:
                self._sum(bucket, share)
                bucket = []
        self._sum(bucket, share)

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank; all must ask."""
        if self.world == 1:
            return flag
        answer = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(answer, dist.ReduceOp.MAX)
        return bool(answer.item())

    def _sum(self, bucket: list[Tensor], share: float) -> None:
        if not bucket:
            return
        flat = torch.cat([grad.reshape(-1) for grad in bucket]) * share
        dist.all_reduce(flat)
        for grad, part in zip(bucket, torch.split(flat, [g.numel() for g in bucket]), strict=True):
            grad.copy_(part.view_as(grad))


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
