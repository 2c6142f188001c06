"""Each encoder as an ONNX file: token ids in, vectors of length one out."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from satkgc.errors import SatkgcError
from satkgc.export.vectors import load_text_model
from satkgc.models import Pooling, Questions, pool_padded
from satkgc.text import TokenBatch
from satkgc.training import RunFolder

TOLERANCE = 1e-4
SAMPLES = 12  # texts that are compared


class _PaddedEncoder(nn.Module):
    """An encoder over padded tensors, as the library's own forward pass takes them."""

    def __init__(self, model: Any, pooling: Pooling) -> None:
        super().__init__()
        self.model, self.pooling = model, pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        return functional.normalize(pool_padded(hidden, attention_mask.bool(), self.pooling), dim=-1)


def write_onnx(run: RunFolder, out: Path, device: str = "cpu") -> dict[str, Any]:
    """Write query.onnx, entity.onnx and the tokenizer, and run both against the run's own vectors."""
    try:
        import onnx  # noqa: F401 (torch.onnx needs it)
        import onnxruntime
    except ImportError as missing:
        raise SatkgcError("ONNX is not installed", remedy="pip install 'satkgc[export]'") from missing
    model = load_text_model(run, "onnx")
    towers, pad_id = model.towers, model.towers.tokenizer.pad_token_id or 0
    entities = np.arange(min(SAMPLES, run.kg.num_entities), dtype=np.int32)
    questions = Questions(entities, entities % np.int32(2 * run.kg.num_relations))
    samples = {
        "query": (towers.query, model.query_tokens(questions), model.encode_questions(questions)),
        "entity": (towers.entity, model.entity_tokens(entities), model.encode_entities(entities)),
    }
    error = 0.0
    for name, (tower, tokens, expected) in samples.items():
        file = out / f"{name}.onnx"
        _export(_PaddedEncoder(tower.model, model.config.encoder.pooling).eval(), pad(tokens, pad_id), file)
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        for rows in (np.arange(len(entities)), np.arange(1)):  # another batch and length than it was traced with
            padded, taken = pad(tokens.select(rows), pad_id), [part.name for part in session.get_inputs()]
            inputs = {key: padded[key].numpy() for key in taken}
            error = max(error, float(np.abs(session.run(None, inputs)[0] - expected[rows]).max()))
    # A model without segments takes none, though its tokenizer may know them: it is to give what the graph takes.
    tokenizer = copy.deepcopy(towers.tokenizer)
    tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = taken  # it saves what is in both
    tokenizer.save_pretrained(out / "tokenizer")
    if error > TOLERANCE:
        raise SatkgcError(f"onnxruntime's vectors differ by {error:.2g}", remedy="export to sentence-transformers")
    return {"largest difference of a vector's entries": error}


def pad(batch: TokenBatch, pad_id: int) -> dict[str, Tensor]:
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


def _export(model: _PaddedEncoder, inputs: dict[str, Tensor], file: Path) -> None:
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
