"""The settings of sampling, each with its default and its source."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from satkgc.settings import Settings


class McmcConfig(Settings):
    """Settings of MCMC subgraphs (Appendix B); the paper gives no values. `McmcSampler` says what they do."""

    section: ClassVar[str] = "sampling.mcmc"

    path: int = Field(default=128, ge=1)
    """d: triples on the depth-first path."""
    k: int = Field(default=15, ge=1)
    """Negatives for each triple of the path, and how many nearest entities the proposal knows."""
    alpha: float = Field(default=0.75, gt=0, lt=1)
    """The power of the cosine."""
    burn_in: int = Field(default=100, ge=0)
    """Steps of the chain before the first negative is kept."""
    refresh: int = Field(default=100, ge=1)
    """Training steps between two readings of the model's vectors."""


class SamplingConfig(Settings):
    """How mini-batches are drawn. The paper's "Mixed" is any subgraph sampler with `random_share = 0.5`."""

    section: ClassVar[str] = "sampling"

    sampler: str = "brwr"
    """A name in `SAMPLERS`. Walks go to the next neighbour by inverse degree (brwr), uniformly (rwr) or by degree
    (brwr_p). mcmc: by what the model finds likely. random: no subgraphs."""
    batch_size: int = 1024
    """|B|: half of it triples, half their inverses."""
    subgraph_triples: int = Field(default=10_000, ge=1)
    """M: distinct triples at which a walk ends (Section 4.1)."""
    walk_steps: int = 0
    """A limit to the steps of a walk, besides M; the authors': 15,000. 0: as many as M takes."""
    restart: float = Field(default=1 / 25, ge=0, lt=1)
    """p_r: the probability with which a walk goes back to its start."""
    entity_disjoint: bool = False
    """The authors' rule for subgraphs: a triple enters only if neither end is in the batch yet."""
    pick: Literal["random", "least-visited"] = "random"
    """Which |B|/2 of a subgraph's M triples; "least-visited": those seen least so far."""
    random_share: float = Field(default=0.0, ge=0, le=1)
    """Share of a subgraph batch that random triples replace (Appendix H)."""
    epoch_rule: Literal["paper", "authors"] = "paper"
    """Steps of an epoch: |T|/|B|, or "authors": |T|/(|B|/2)."""
    mcmc: McmcConfig = McmcConfig()

    @field_validator("sampler")
    @classmethod
    def _registered(cls, name: str) -> str:
        from satkgc.sampling.registry import SAMPLERS  # samplers are made of settings, so these are imported first

        if name not in SAMPLERS:
            raise ValueError(f"choose one of {', '.join(SAMPLERS)}")
        return name

    @field_validator("batch_size")
    @classmethod
    def _even(cls, size: int) -> int:
        if size < 2 or size % 2:
            raise ValueError("set an even number: every triple comes with its inverse")
        return size

    @field_validator("walk_steps")
    @classmethod
    def _fits_counter(cls, steps: int) -> int:
        if not 0 <= steps < 2**32:
            raise ValueError("set it below 2**32, or to 0")
        return steps

    @property
    def triples(self) -> int:
        """n = |B|/2, the training triples of one batch."""
        return self.batch_size // 2

    def steps_per_epoch(self, num_triples: int) -> int:
        """|T|/|B| (Section 4.2) or the authors' |T|/(|B|/2), rounded down, at least one."""
        size = self.batch_size if self.epoch_rule == "paper" else self.triples
        return max(1, num_triples // size)
