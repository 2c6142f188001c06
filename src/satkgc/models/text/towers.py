"""The two encoders: texts in, vectors of length one out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from satkgc.arrays import Float32
from satkgc.models.text.backbone import check_match, load_model, load_tokenizer
from satkgc.models.text.config import EncoderConfig
from satkgc.models.text.packed import Packed
from satkgc.models.text.store import read_config, write_model
from satkgc.models.text.tower import Tower
from satkgc.progress import progress_bar
from satkgc.text import TokenBatch


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
    def load(cls, folder: Path | str, device: Any = "cpu", **overrides: Any) -> Towers:
        """Read saved towers; `overrides` replace settings that need no retraining, like `forward` or `compile`."""
        folder = Path(folder)
        config = replace(read_config(folder), **{"compile": "auto", **overrides})
        first, second = ("shared", "shared") if config.tied else ("query", "entity")
        return cls._open(config, *(str(folder / part) for part in (first, second, "tokenizer"))).to(device).eval()

    @classmethod
    def _open(cls, config: EncoderConfig, query: str, entity: str, tokenizer: str) -> Towers:
        opened = load_tokenizer(tokenizer, config)
        model = load_model(query, config)
        check_match(model, opened, query)
        return cls(config, model, model if config.tied else load_model(entity, config), opened)

    def save(self, folder: Path | str) -> None:
        """Write towers and tokenizer into a folder; the caller makes it atomic by writing to a sibling first."""
        models = {"shared": self.query} if self.config.tied else {"query": self.query, "entity": self.entity}
        models = {name: tower.model for name, tower in models.items()}
        write_model(Path(folder), self.config, models, self.tokenizer)

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

    def queries(self, batch: TokenBatch | Packed) -> Tensor:
        """Vectors of (head, relation) texts, length one, float32, differentiable.  # (n, dim)"""
        return self.query(batch)

    def entities(self, batch: TokenBatch | Packed) -> Tensor:
        """Vectors of entity texts, length one, float32, differentiable.  # (n, dim)"""
        return self.entity(batch)

    def encode_queries(self, batch: TokenBatch, **options: Any) -> Float32:
        """Vectors of many query texts as an array, without gradients; options as `encode_entities`."""
        return self._encode(self.query, batch, "encoding queries", **options)

    def encode_entities(self, batch: TokenBatch, **options: Any) -> Float32:
        """Vectors of many entity texts as an array, without gradients.

        `batch_tokens` bounds the tokens encoded at once, `progress` shows a bar on a terminal, and `dtype` is the
        precision of the matrix products ("float32" or "bfloat16"; by default bfloat16 on a GPU).
        """
        return self._encode(self.entity, batch, "encoding entities", **options)

    def _encode(
        self,
        tower: Tower,
        batch: TokenBatch,
        title: str,
        batch_tokens: int | None = None,
        progress: bool = True,
        dtype: str | None = None,
    ) -> Float32:
        on_gpu = self.device.type == "cuda"
        batch_tokens = batch_tokens or (131_072 if on_gpu else 4_096)
        bf16 = (dtype or ("bfloat16" if on_gpu else "float32")) == "bfloat16"
        order = np.argsort(batch.lengths, kind="stable")
        groups = np.cumsum(batch.lengths[order]) // batch_tokens
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
                    out[rows] = tower(batch.select(rows)).cpu().numpy()
                    bar.advance(task, len(rows))
        finally:
            if training:
                tower.train()
        return out
