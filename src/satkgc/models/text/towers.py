"""The two encoders and their tokenizer: from texts to vectors, and on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Float32
from satkgc.errors import SatkgcError
from satkgc.models.text.backbone import check_match, load_model, load_tokenizer
from satkgc.models.text.config import EncoderConfig
from satkgc.models.text.packed import Packed
from satkgc.models.text.tower import Tower
from satkgc.progress import progress_bar
from satkgc.text import TokenBatch

TOKENS_AT_ONCE = {"cuda": 131_072, "cpu": 4_096}  # encoded without gradients


class Towers(nn.Module):
    """Encoder_hr for queries and Encoder_t for entities, with their tokenizer (Section 4)."""

    def __init__(self, config: EncoderConfig, query: Any, entity: Any, tokenizer: Any) -> None:
        super().__init__()
        self.config = config
        self.tokenizer = tokenizer
        self.query = Tower(query, config, tokenizer.pad_token_id or 0)
        self.entity = self.query if config.tied else Tower(entity, config, tokenizer.pad_token_id or 0)

    @classmethod
    def create(cls, config: EncoderConfig) -> Towers:
        """Towers that both start from a pretrained backbone."""
        return cls._open(config, config.backbone, config.backbone, config.backbone)

    @classmethod
    def load(cls, folder: Path, config: EncoderConfig) -> Towers:
        """Read saved towers; settings that need no retraining, like `forward` or `compile`, may have changed since."""
        parts = ("shared", "shared") if config.tied else ("query", "entity")
        for name in (*parts, "tokenizer"):
            if not (folder / name).is_dir():
                raise SatkgcError("part of the model is missing", where=folder / name, remedy="copy the run again")
        return cls._open(config, *(str(folder / part) for part in (*parts, "tokenizer"))).eval()

    @classmethod
    def _open(cls, config: EncoderConfig, query: str, entity: str, tokenizer: str) -> Towers:
        opened = load_tokenizer(tokenizer, config)
        model = load_model(query, config)
        check_match(model, opened, query)
        return cls(config, model, model if config.tied else load_model(entity, config), opened)

    def save(self, folder: Path) -> None:
        """One folder a tower as save_pretrained writes it, and the tokenizer, in each too."""
        towers = {"shared": self.query} if self.config.tied else {"query": self.query, "entity": self.entity}
        for name, tower in towers.items():
            tower.model.save_pretrained(folder / name)
            self.tokenizer.save_pretrained(folder / name)  # so that each is a whole model to other programs
        self.tokenizer.save_pretrained(folder / "tokenizer")

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return int(self.query.model.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def pack(self, batch: TokenBatch) -> Packed:
        """A batch as tensors, ready to be copied to the device: do it on the prefetch thread; both towers take it."""
        return self.query.pack(batch)

    def encode(
        self,
        tower: Tower,
        batch: TokenBatch,
        title: str,
        progress: bool = False,
        dtype: str | None = None,
        unit: bool = True,
    ) -> Float32:
        """Vectors of many texts, of length one unless `unit` is false, without gradients; `dtype` is that of the matrix
        products, by default bfloat16 on a GPU.  # (n, dim)"""
        on_gpu = self.device.type == "cuda"
        bf16 = (dtype or ("bfloat16" if on_gpu else "float32")) == "bfloat16"
        order = np.argsort(batch.lengths, kind="stable")
        groups = np.cumsum(batch.lengths[order]) // TOKENS_AT_ONCE["cuda" if on_gpu else "cpu"]
        chunks = np.split(order, np.flatnonzero(np.diff(groups)) + 1) if len(order) else []
        out = np.empty((len(batch), self.dim), np.float32)
        training = tower.training
        if training:
            tower.eval()
        try:
            with (
                torch.inference_mode(),
                torch.autocast(self.device.type, torch.bfloat16, enabled=bf16),
                progress_bar(progress) as bar,
            ):
                task = bar.add_task(title, total=len(batch))
                for rows in chunks:
                    vectors = tower(batch.select(rows)).float()
                    out[rows] = (normalize(vectors) if unit else vectors).cpu().numpy()
                    bar.advance(task, len(rows))
        finally:
            if training:
                tower.train()
        return out


def normalize(vectors: Tensor) -> Tensor:
    """Vectors of length one, whose inner product is the cosine that scores are.  # (n, dim)"""
    return functional.normalize(vectors, dim=-1)
