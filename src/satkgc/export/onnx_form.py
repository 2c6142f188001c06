"""Each tower as an ONNX file: token ids in, vectors of length one out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from satkgc.errors import SatkgcError
from satkgc.models.text.config import Pooling
from satkgc.models.text.pooling import pool_padded
from satkgc.text import TokenBatch
from satkgc.training import Run

TOLERANCE = 1e-4


class _Plain(nn.Module):
    """A tower over padded tensors, as the library's own forward pass takes them."""

    def __init__(self, model: Any, pooling: Pooling) -> None:
        super().__init__()
        self.model, self.pooling = model, pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        return pool_padded(hidden, attention_mask.bool(), self.pooling)


def write_onnx(run: Run, out: Path) -> dict[str, Any]:
    """Write query.onnx, entity.onnx and the tokenizer, and run both against the run's own vectors."""
    try:
        import onnx  # noqa: F401 (torch.onnx needs it)
        import onnxruntime
    except ImportError as missing:
        raise SatkgcError("ONNX is not installed", remedy="pip install 'satkgc[export]'") from missing
    towers = run.towers()
    texts = run.texts(towers)
    towers.tokenizer.save_pretrained(out / "tokenizer")
    count = min(12, run.kg.num_entities)
    queries = texts.queries(np.arange(count), np.arange(count) % (2 * run.kg.num_relations))
    samples = {"query": queries, "entity": texts.entities(np.arange(count))}
    error = 0.0
    for name, tower in (("query", towers.query), ("entity", towers.entity)):
        inputs = padded(samples[name], towers.tokenizer.pad_token_id or 0)
        file = out / f"{name}.onnx"
        _export(_Plain(tower.model, towers.config.pooling).eval(), inputs, file)
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        for rows in (np.arange(count), np.arange(1)):  # another batch and another length than it was traced with
            batch = samples[name].select(rows)
            given = {k: v.numpy() for k, v in padded(batch, towers.tokenizer.pad_token_id or 0).items()}
            encode = towers.encode_queries if name == "query" else towers.encode_entities
            error = max(error, float(np.abs(session.run(None, given)[0] - encode(batch, progress=False)).max()))
    if error > TOLERANCE:
        raise SatkgcError(f"onnxruntime's vectors differ by {error:.2g}", remedy="export to sentence-transformers")
    return {"largest difference of a vector's entries": error}


def padded(batch: TokenBatch, pad_id: int) -> dict[str, Tensor]:
    """A batch as the tensors that the graph takes.  # (n, L) each"""
    mask = np.arange(int(batch.lengths.max())) < batch.lengths[:, None]
    ids = np.full(mask.shape, pad_id, np.int64)
    ids[mask] = batch.ids
    inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}
    if batch.type_ids is not None:
        types = np.zeros(mask.shape, np.int64)
        types[mask] = batch.type_ids
        inputs["token_type_ids"] = torch.from_numpy(types)
    return inputs


def _export(model: _Plain, inputs: dict[str, Tensor], file: Path) -> None:
    """By tracing: an encoder has no branches, and torch's newer exporter takes twenty times as long for the same."""
    names = [*inputs, "vectors"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it traces, and that there is a newer one
        torch.onnx.export(
            model,
            tuple(inputs.values()),
            str(file),
            input_names=names[:-1],
            output_names=names[-1:],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in inputs} | {"vectors": {0: "texts"}},
            opset_version=18,
            dynamo=False,
        )
