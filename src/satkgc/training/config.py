"""All settings of a run, one small dataclass a room."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig
from satkgc.models.text import EncoderConfig, ObjectiveConfig
from satkgc.sampling import SamplingConfig
from satkgc.text import TextConfig


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of the loop. Those of the optimizer are the authors'."""

    seed: int = 0
    """Of the batches, of dropout and of which triples are validated."""
    epochs: float = 10.0
    """Length of the run in epochs, as `sampling.epoch_rule` counts them."""
    steps: int | None = None
    """Length of the run in steps, instead of epochs."""
    learning_rate: float = 5e-5
    """Its peak; it rises over the warm-up and falls to zero on a straight line."""
    objective_learning_rate: float | None = None
    """The peak for τ and β; none takes `learning_rate`."""
    warmup_steps: int = 400
    """Steps of warm-up; at most a tenth of the run, so that a short run is not all warm-up."""
    weight_decay: float = 1e-4
    """AdamW's, on weight matrices only: not on biases, norms, τ or β."""
    clip: float = 10.0
    """Largest norm of the gradient."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the matrix products; weights are float32 always. auto: bfloat16 on a GPU, float32 on a CPU."""
    chunk_tokens: int | None = None
    """Gradient caching: encode the batch in chunks of about so many tokens, so that memory does not grow with it."""
    average: float = 0.0
    """Decay of an exponential average of the weights, which is then what is validated and kept; 0: none."""
    validations: int = 10
    """How often, at equal distances and at the end, filtered MRR is taken on validation triples; 0: never."""
    validation_triples: int = 2_000
    """How many of them, always the same; 0: all."""
    select: Literal["best", "last"] = "best"
    """Which weights the run keeps: the best validated, or the last."""
    checkpoint_minutes: float = 10.0
    """Minutes between checkpoints."""
    max_minutes: float | None = None
    """Save and stop after so many minutes of this process; --resume goes on."""
    device: str = "auto"
    """auto: the GPU if there is one. Or cpu, cuda, cuda:1."""
    workers: int = 1
    """Threads that prepare batches ahead."""
    log_steps: int = 10
    """Steps between two lines of the log."""
    tracker: Literal["none", "tensorboard", "trackio"] = "none"
    """Send the log there too, where it is installed."""

    def __post_init__(self) -> None:
        rules = [
            ("epochs", self.epochs > 0, "more than 0"),
            ("steps", self.steps is None or self.steps >= 1, "1 or more, or none"),
            ("learning_rate", 0 < self.learning_rate < 1, "between 0 and 1; fine-tuning takes about 1e-5 to 1e-4"),
            ("objective_learning_rate", 0 < (self.objective_learning_rate or 1e-5) < 1, "between 0 and 1, or none"),
            ("warmup_steps", self.warmup_steps >= 0, "0 or more"),
            ("weight_decay", 0 <= self.weight_decay < 1, "0 or more, and below 1"),
            ("clip", self.clip > 0, "more than 0"),
            ("chunk_tokens", self.chunk_tokens is None or self.chunk_tokens >= 64, "64 or more, or none"),
            ("average", 0 <= self.average < 1, "0 (off) or a decay below 1, such as 0.999"),
            ("validations", self.validations >= 0, "0 (never) or more"),
            ("validation_triples", self.validation_triples >= 0, "0 (all) or more"),
            ("checkpoint_minutes", self.checkpoint_minutes >= 0, "0 (every step) or more"),
            ("max_minutes", self.max_minutes is None or self.max_minutes > 0, "more than 0, or none"),
            ("workers", self.workers >= 1, "1 or more"),
            ("log_steps", self.log_steps >= 1, "1 or more"),
        ]
        for name, good, allowed in rules:
            if not good:
                raise SatkgcError(f"training.{name} is {getattr(self, name)}", remedy=f"set it to {allowed}")


# Settings that decide how a run is carried out and not what comes of it: a resumed run may change them.
# The last three are what helps when the loss was no number.
CARRYING_OUT = frozenset(
    [
        *("training.max_minutes", "training.checkpoint_minutes", "training.device", "training.workers"),
        *("training.log_steps", "training.tracker", "training.chunk_tokens", "evaluation.memory_mib"),
        *("encoder.compile", "encoder.forward", "encoder.attention"),
        *("training.learning_rate", "training.clip", "training.precision"),
    ]
)


@dataclass(frozen=True)
class Config:
    """All settings of a run; `recipe` and `applied` say where they came from."""

    recipe: str = "satkgc"
    applied: str = "none"
    """The settings for this graph that were laid over the recipe."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    text: TextConfig = field(default_factory=TextConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        objective, distances = self.objective, self.sampling.distances
        if objective.proximity == "off":
            # Nobody will read the distances, so none are computed.
            object.__setattr__(self, "sampling", replace(self.sampling, distances="none"))
        elif distances == "none":
            raise SatkgcError(
                f"objective.proximity is {objective.proximity!r}, and sampling.distances is 'none'",
                remedy="set sampling.distances to graph, or objective.proximity to off",
            )
        elif (objective.proximity_rule == "exact") != (distances == "pairs"):
            raise SatkgcError(
                f"objective.proximity_rule is {objective.proximity_rule!r}, and sampling.distances is {distances!r}",
                remedy="set both to exact and pairs, or neither",
            )

    def total_steps(self, num_triples: int) -> int:
        """Steps of the whole run on a graph with so many training triples."""
        if self.training.steps is not None:
            return self.training.steps
        return max(1, round(self.training.epochs * self.sampling.steps_per_epoch(num_triples)))
