"""All settings of a run, one class a package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from satkgc.evaluation import EvaluationConfig
from satkgc.models import MODELS, ModelConfig, TextModelConfig, VectorModel
from satkgc.sampling import SamplingConfig
from satkgc.settings import Settings


class TrainingConfig(Settings):
    """Settings of the loop. Those of the optimizer are the authors'."""

    section: ClassVar[str] = "training"

    seed: int = Field(default=0, ge=0, lt=2**64)
    """Of the batches, of dropout and of which triples are validated."""
    epochs: float = Field(default=10.0, gt=0)
    """Length of the run in epochs, as `sampling.epoch_rule` counts them."""
    steps: int | None = Field(default=None, ge=1)
    """Length of the run in steps, instead of epochs."""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    """AdamW for networks; Adagrad is usual for embedding models."""
    learning_rate: float = 5e-5
    """Its peak; it rises over the warm-up and falls to zero on a straight line."""
    warmup_steps: int = Field(default=400, ge=0)
    """Steps of warm-up; at most a tenth of the run, so that a short run is not all warm-up."""
    weight_decay: float = Field(default=1e-4, ge=0, lt=1)
    """The optimizer's, on weight matrices only: not on biases, norms, or single numbers."""
    clip: float = Field(default=10.0, gt=0)
    """Largest norm of the gradient."""
    precision: Literal["auto", "float32", "tf32", "bfloat16"] = "auto"
    """Of the matrix products; weights are float32 always. auto: bfloat16 on a GPU, float32 on a CPU. tf32: on a GPU
    float32 rounded to 10 bits, half as fast as bfloat16 and much faster than float32; scores are not rounded."""
    validations: int = Field(default=10, ge=0)
    """How often, at equal distances and at the end, filtered MRR is taken on validation triples; 0: never."""
    validation_triples: int = Field(default=2_000, ge=0)
    """How many of them, always the same; 0: all."""
    select: Literal["best", "last"] = "best"
    """Which weights the run keeps: the best validated, or the last."""
    checkpoint_minutes: float = Field(default=10.0, ge=0)
    """Minutes between checkpoints; 0: after every step."""
    keep_checkpoints: bool = False
    """Leave the checkpoints of a finished run where they are; it does not need them."""
    max_minutes: float | None = Field(default=None, gt=0)
    """Save and stop after so many minutes of this process; --resume goes on."""
    device: str = "auto"
    """auto: the GPU if there is one. Or cpu, cuda, cuda:1."""
    workers: int = Field(default=1, ge=1)
    """Threads that prepare batches ahead."""
    log_steps: int = Field(default=10, ge=1)
    """Steps between two lines of the log."""
    tracker: Literal["tensorboard", "wandb", "mlflow", "trackio"] | None = None
    """Send the log there too, where it is installed; a resumed run goes on in the same one there."""

    @field_validator("learning_rate")
    @classmethod
    def _small(cls, rate: float) -> float:
        if not 0 < rate < 1:
            raise ValueError("set it to between 0 and 1; fine-tuning takes about 1e-5 to 1e-4")
        return rate


# Settings that decide how a run is carried out and not what comes of it: a resumed run may change them, and those that
# its model's settings name so.
# The last three are what helps when the loss was not finite.
EXECUTION = frozenset(
    [
        *(
            "training.max_minutes",
            "training.checkpoint_minutes",
            "training.keep_checkpoints",
            "training.device",
            "training.workers",
        ),
        *("training.log_steps", "training.tracker", "evaluation.memory_mib"),
        *("training.learning_rate", "training.clip", "training.precision"),
    ]
)

# What other programs call some settings: a name of theirs is answered with ours.
ALIASES = {
    alias: name
    for name, others in {
        "training.learning_rate": "lr peak_lr",
        "sampling.batch_size": "bs batch per_device_train_batch_size",
        "training.epochs": "num_epochs num_train_epochs max_epochs",
        "training.steps": "num_steps max_steps",
        "training.seed": "random_seed random_state",
        "training.device": "gpu cuda",
        "training.warmup_steps": "warmup num_warmup_steps",
        "training.clip": "grad_clip max_grad_norm",
        "training.precision": "fp16 bf16 amp dtype",
        "model.encoder.backbone": "model model_name",
        "model.text.max_tokens": "max_length max_len max_seq_length",
        "model.text.neighbour_dropout": "bare_share",
        "model.text.exclude": "hide",
        "model.loss.temperature": "tau temp",
        "model.loss.margin": "gamma",
        "model.loss.logit_adjustment": "popularity logq",
    }.items()
    for alias in others.split()
}


class Config(Settings):
    """All settings of a run; `recipe` and `applied` say where they came from."""

    recipe: str = "satkgc"
    applied: str | None = None
    """The benchmark whose settings were laid over the recipe, or "small" for those of small graphs."""
    model: SerializeAsAny[ModelConfig] = TextModelConfig()
    sampling: SamplingConfig = SamplingConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    experts: dict[str, Config] = Field(default_factory=dict)
    """Of a fused model: the settings of each run that it is made of, by the name it has in the run folder."""

    @model_validator(mode="after")
    def _experts_fit(self) -> Config:
        for name, config in self.experts.items():
            if not re.fullmatch(r"[\w-]+", name):
                raise ValueError(f"{name!r} is no name of an expert; use letters, digits, - and _")
            if config.experts:
                raise ValueError(f"the expert {name} is a fused model itself; name its experts instead")
        if bool(self.experts) != (self.model.kind == "fused"):
            what = "model.kind is fused and there are no experts" if not self.experts else "experts without a mixture"
            raise ValueError(f'{what}; set model.kind to "fused" and name recipes under [experts.NAME]')
        return self

    @model_validator(mode="after")
    def _reranked_by_cosine(self) -> Config:
        if self.evaluation.rerank_hops and not issubclass(MODELS[self.model.kind], VectorModel):
            what = f"evaluation.rerank_hops adds to a cosine, which a model of kind {self.model.kind} has not"
            raise ValueError(f"{what}; set it to 0")
        return self

    @field_validator("model", mode="before")
    @classmethod
    def _of_kind(cls, values: Any) -> Any:
        return ModelConfig.variant(values)(**values) if isinstance(values, Mapping) else values

    def total_steps(self, num_triples: int) -> int:
        """Steps of the whole run on a graph with so many training triples; of a fused run those of all experts."""
        if self.experts:
            return sum(expert.total_steps(num_triples) for expert in self.experts.values())
        if self.training.steps is not None:
            return self.training.steps
        return max(1, round(self.training.epochs * self.sampling.steps_per_epoch(num_triples)))

    def total_epochs(self, num_triples: int) -> float:
        """The same in epochs."""
        if self.experts:
            return sum(expert.total_epochs(num_triples) for expert in self.experts.values())
        return self.total_steps(num_triples) / self.sampling.steps_per_epoch(num_triples)
