"""Several processes, one global batch: the few places where ranks speak to one another."""

from __future__ import annotations

import atexit
import datetime
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError

BUCKET = 1 << 22  # elements of gradient sent at once: 16 MiB


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
            with _together():
                dist.all_reduce(mine)
        return mine

    def gather(self, mine: Tensor, sizes: Sequence[int]) -> Tensor:
        """The rows of all ranks, rank after rank; `sizes` are their numbers of rows.  # (rows, D) → (Σ sizes, D)"""
        if self.world == 1:
            return mine
        padded = mine.new_zeros(max(sizes), *mine.shape[1:])
        padded[: len(mine)] = mine
        parts = [torch.empty_like(padded) for _ in sizes]
        with _together():
            dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    def gather_ragged(self, values: Int32, lengths: Int64, size: int) -> tuple[Int32, Int64]:
        """The values of all `size` rows laid end to end, and the lengths of the rows; every rank gives its share."""
        if self.world == 1:
            return values, lengths
        mine = (torch.from_numpy(part).to(self.device) for part in (values, lengths))
        values_here, lengths_here = mine
        all_lengths = self.gather_shares(lengths_here, size).cpu().numpy()
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(all_lengths)])
        cuts = [int(ends[size * rank // self.world]) for rank in range(self.world + 1)]
        all_values = self.gather(values_here, [stop - start for start, stop in pairwise(cuts)])
        return all_values.cpu().numpy(), all_lengths

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank; all must ask."""
        if self.world == 1:
            return flag
        answer = torch.tensor(float(flag), device=self.device)
        with _together():
            dist.all_reduce(answer, dist.ReduceOp.MAX)
        return bool(answer.item())


class GradientSum:
    """Adds up `share` times the gradients of all ranks, while others are still being computed.

    They are sent in buckets, which must come in one order on all ranks: that of the parameters. A bucket is on its way
    as soon as all gradients in it and before it are final, on whatever rank that is; `finish` sends the rest.
    """

    def __init__(self, processes: Processes, parameters: Iterable[nn.Parameter], share: float = 1.0) -> None:
        self._buckets: list[list[nn.Parameter]] = []
        self._share = share
        self._final: set[nn.Parameter] = set()
        self._sent: list[tuple[Tensor, dist.Work]] = []
        room = 0
        for parameter in (p for p in parameters if p.requires_grad and processes.world > 1):
            if room < parameter.numel() or not self._buckets:
                self._buckets.append([])
                room = BUCKET
            self._buckets[-1].append(parameter)
            room -= parameter.numel()

    @contextmanager
    def last_backward(self, parameters: Iterable[nn.Parameter]) -> Iterator[None]:
        """Around the backward pass that makes these gradients whole: each is final as soon as it is there."""
        own = {parameter for bucket in self._buckets for parameter in bucket}
        hooks: list[Any] = [
            p.register_post_accumulate_grad_hook(self._arrived)  # type: ignore[no-untyped-call]
            for p in parameters
            if p in own
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def finish(self) -> None:
        """Wait until every gradient is the sum."""
        self._final.update(parameter for bucket in self._buckets for parameter in bucket)
        self._send()
        for bucket, (flat, work) in zip(self._buckets, self._sent, strict=True):
            with _together():
                work.wait()
            for parameter, part in zip(bucket, torch.split(flat, [p.numel() for p in bucket]), strict=True):
                assert parameter.grad is not None
                parameter.grad.copy_(part.view_as(parameter))

    def _arrived(self, parameter: Tensor) -> None:
        self._final.add(cast(nn.Parameter, parameter))
        self._send()

    def _send(self) -> None:
        while len(self._sent) < len(self._buckets) and self._final.issuperset(self._buckets[len(self._sent)]):
            bucket = self._buckets[len(self._sent)]
            for parameter in bucket:  # a rank without a text of that kind has no gradient
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            flat = torch.cat([parameter.grad.reshape(-1) for parameter in bucket if parameter.grad is not None])
            flat = flat if self._share == 1 else flat * self._share
            with _together():
                work = dist.all_reduce(flat, async_op=True)
            assert work is not None
            self._sent.append((flat, work))


@contextmanager
def _together() -> Iterator[None]:
    """Around what all ranks do together: where one has died, the others learn it here."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        what = f"another process of this run has ended, so this one ends too ({str(error).splitlines()[0]})"
        remedy = "see what that one said; the same command goes on, train with --resume"
        raise SatkgcError(what, remedy=remedy) from error


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
