"""What to evaluate and how."""

from __future__ import annotations

from dataclasses import dataclass

from satkgc.errors import SatkgcError
from satkgc.evaluation.exact import MOST_BONUS
from satkgc.evaluation.ranking import TIES


@dataclass(frozen=True)
class EvaluationConfig:
    """How ranks are taken. The defaults are the paper's: all entities, filtered, no re-ranking; ties are realistic."""

    candidates: str = "all"  # "all" entities or those of the "split" (inductive graphs)
    sampled: int = 0  # rank among so many candidates drawn for each query; 0: among all of them
    ties: str = "realistic"  # the rule that is reported: optimistic, realistic or pessimistic
    rerank_hops: int = 0  # neighbourhood re-ranking: candidates within so many hops get a bonus; 0: off
    rerank_weight: float = 0.05  # that bonus, added to the cosine
    memory_mib: int = 2048  # for entity vectors and scores; vectors that need more go to a temporary file
    seed: int = 0  # of the sampled candidates

    def __post_init__(self) -> None:
        rules = [
            ("candidates", self.candidates in ("all", "split"), '"all" or "split", and sampled to a number'),
            ("sampled", self.sampled >= 0, "0 (all) or a number of candidates"),
            ("ties", self.ties in TIES, f"one of {', '.join(TIES)}"),
            ("rerank_hops", self.rerank_hops >= 0, "0 (off) or a number of hops"),
            ("rerank_weight", 0 <= self.rerank_weight <= MOST_BONUS, f"between 0 and {MOST_BONUS}"),
            ("memory_mib", self.memory_mib >= 16, "at least 16"),
        ]
        for name, good, allowed in rules:
            if not good:
                raise SatkgcError(f"evaluation.{name} is {getattr(self, name)!r}", remedy=f"set it to {allowed}")

    @property
    def described(self) -> str:
        """The candidates in words, for reports and result files."""
        base = "all entities" if self.candidates == "all" else "entities of the split"
        return f"{self.sampled:,} sampled of {base}" if self.sampled else base
