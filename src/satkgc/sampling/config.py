"""The settings of sampling, each with its default and its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from satkgc.errors import SatkgcError

SamplerName = Literal["brwr", "rwr", "brwr_p", "mcmc", "random"]
Pick = Literal["random", "least-visited"]
EpochRule = Literal["paper", "authors"]


@dataclass(frozen=True)
class McmcConfig:
    """Settings of MCMC subgraphs (Appendix B); the paper gives no values, the docstring of `mcmc` says what they do."""

    path: int = 128  # d: triples on the depth-first path
    k: int = 15  # negatives per path triple, and how many nearest entities the proposal knows
    alpha: float = 0.75  # the power of the cosine, 0 < α < 1
    burn_in: int = 100  # steps of the chain before the first negative is kept
    refresh: int = 100  # training steps between two readings of the model's vectors

    def __post_init__(self) -> None:
        for name in ("path", "k", "refresh"):
            _require(getattr(self, name) >= 1, f"sampling.mcmc.{name} = {getattr(self, name)}", "set it to 1 or more")
        _require(0 < self.alpha < 1, f"sampling.mcmc.alpha = {self.alpha}", "set it between 0 and 1")
        _require(self.burn_in >= 0, f"sampling.mcmc.burn_in = {self.burn_in}", "set it to 0 or more")


@dataclass(frozen=True)
class SamplingConfig:
    """How mini-batches are drawn. The paper's "Mixed" is any subgraph sampler with `random_share = 0.5`."""

    sampler: SamplerName = "brwr"  # next neighbour by inverse degree, rwr: uniform, brwr_p: by degree; mcmc; random
    batch_size: int = 1024  # |B|: half of it triples, half their inverses
    subgraph_triples: int = 10_000  # M: distinct triples at which a walk ends (Section 4.1)
    walk_steps: int = 0  # a limit to the steps of a walk, besides M; the authors': 15,000. 0: as many as M takes
    restart: float = 1 / 25  # p_r
    # The next three are rules for subgraphs; random batches are drawn without them.
    entity_disjoint: bool = False  # the authors: a triple enters only if neither end is in the batch yet
    pick: Pick = "random"  # which |B|/2 of a subgraph's M triples; "least-visited": those seen least so far
    random_share: float = 0.0  # share of a subgraph batch that random triples replace (Appendix H)
    epoch_rule: EpochRule = "paper"  # steps an epoch: |T|/|B|, or "authors": |T|/(|B|/2)
    mcmc: McmcConfig = field(default_factory=McmcConfig)

    def __post_init__(self) -> None:
        for name, allowed in (
            ("sampler", SamplerName.__args__),  # type: ignore[attr-defined]
            ("pick", Pick.__args__),  # type: ignore[attr-defined]
            ("epoch_rule", EpochRule.__args__),  # type: ignore[attr-defined]
        ):
            value = getattr(self, name)
            _require(value in allowed, f"sampling.{name} = {value!r}", f"choose one of {', '.join(allowed)}")
        _require(
            self.batch_size >= 2 and self.batch_size % 2 == 0,
            f"sampling.batch_size = {self.batch_size}",
            "set an even number: every triple comes with its inverse",
        )
        _require(
            self.subgraph_triples >= 1, f"sampling.subgraph_triples = {self.subgraph_triples}", "set it to 1 or more"
        )
        _require(
            0 <= self.walk_steps < 2**32, f"sampling.walk_steps = {self.walk_steps}", "set it below 2**32, or to 0"
        )
        _require(0 <= self.restart < 1, f"sampling.restart = {self.restart}", "set it to 0 or more, and below 1")
        _require(0 <= self.random_share <= 1, f"sampling.random_share = {self.random_share}", "set it within 0 and 1")

    @property
    def triples(self) -> int:
        """n = |B|/2, the training triples of one batch."""
        return self.batch_size // 2

    def steps_per_epoch(self, num_triples: int) -> int:
        """|T|/|B| (Section 4.2) or the authors' |T|/(|B|/2), rounded down, at least one."""
        size = self.batch_size if self.epoch_rule == "paper" else self.triples
        return max(1, num_triples // size)


def _require(holds: bool, what: str, remedy: str) -> None:
    if not holds:
        raise SatkgcError(f"{what} is out of range", remedy=remedy)
