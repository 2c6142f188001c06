"""What to evaluate and how."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from satkgc.evaluation.ranking import MOST_BONUS
from satkgc.settings import Settings


class EvaluationConfig(Settings):
    """How ranks are taken. The defaults are the paper's: all entities, filtered, no re-ranking; ties are realistic."""

    section: ClassVar[str] = "evaluation"

    candidates: Literal["all", "split"] = "all"
    """All entities, or those of the split (inductive graphs)."""
    sampled: int = Field(default=0, ge=0)
    """Rank among so many candidates drawn for each query; 0: among all of them."""
    ties: Literal["optimistic", "realistic", "pessimistic"] = "realistic"
    """The rule that is reported."""
    rerank_hops: int = Field(default=0, ge=0)
    """Neighbourhood re-ranking: candidates within so many hops get a bonus; 0: off."""
    rerank_weight: float = Field(default=0.05, ge=0, le=MOST_BONUS)
    """That bonus, added to the cosine."""
    memory_mib: int = Field(default=2048, ge=16)
    """For entity vectors and scores; vectors that need more go to a temporary file."""
    seed: int = Field(default=0, ge=0)
    """Of the sampled candidates."""

    @field_validator("candidates", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if value not in ("all", "split"):
            raise ValueError('set it to "all" or "split", and sampled to a number')
        return value

    @property
    def candidates_in_words(self) -> str:
        """For reports and result files."""
        base = "all entities" if self.candidates == "all" else "entities of the split"
        return f"{self.sampled:,} sampled of {base}" if self.sampled else base
