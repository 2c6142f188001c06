"""Each encoder as a folder that `SentenceTransformer(...)` loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from satkgc.errors import SatkgcError
from satkgc.export.vectors import entity_strings, load_text_model, relation_strings
from satkgc.models import Questions, quiet
from satkgc.training import RunFolder

TOLERANCE = 1e-4  # what two orders of summation may differ by
SAMPLES = 16  # texts that are compared


def write_sentence_transformers(run: RunFolder, out: Path, device: str = "cpu") -> dict[str, Any]:
    """Write query/ and entity/, load both again and compare their vectors with the run's own."""
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Normalize, Pooling, Transformer
    except ImportError as missing:
        raise SatkgcError("sentence-transformers is not installed", remedy="pip install 'satkgc[export]'") from missing
    model = load_text_model(run, "sentence-transformers")
    towers, text, kg = model.towers, model.config.text, run.kg
    for name, tower in (("query", towers.query), ("entity", towers.entity)):
        plain = out / f".{name}"  # a folder of transformers' own, for the module to start from
        tower.model.save_pretrained(plain)
        towers.tokenizer.save_pretrained(plain)
        # A pair's first text, the head, is what gets cut: the relation stays whole.
        cut = {"text": {"truncation": "only_first"}}
        with quiet():
            words = Transformer(str(plain), max_seq_length=text.max_tokens, processing_kwargs=cut)
        pooling = Pooling(model.dim, pooling_mode=model.config.encoder.pooling)
        SentenceTransformer(modules=[words, pooling, Normalize()], device="cpu").save(
            str(out / name), create_model_card=False
        )
        for file in plain.iterdir():
            file.unlink()
        plain.rmdir()
    rng = np.random.default_rng(0)
    heads = rng.integers(0, kg.num_entities, SAMPLES).astype(np.int32)
    directed = rng.integers(0, 2 * kg.num_relations, SAMPLES).astype(np.int32)
    entities = np.arange(min(SAMPLES, kg.num_entities), dtype=np.int32)
    relations = relation_strings(kg, text)
    pairs = [
        (next(entity_strings(kg, text, head, head + 1)), relations[d])
        for head, d in zip(heads.tolist(), directed.tolist(), strict=True)
    ]
    expected = [model.encode_questions(Questions(heads, directed)), model.encode_entities(entities)]
    inputs: list[Any] = [pairs, list(entity_strings(kg, text, 0, len(entities)))]
    with quiet():
        vectors = [
            SentenceTransformer(str(out / name), device="cpu", trust_remote_code=False).encode(
                texts, show_progress_bar=False
            )
            for name, texts in zip(("query", "entity"), inputs, strict=True)
        ]
    error = max(float(np.abs(a - b).max()) for a, b in zip(expected, vectors, strict=True))
    if error > TOLERANCE:
        raise SatkgcError(
            f"the exported encoders' vectors differ by {error:.2g}",
            remedy="the backbone does something that sentence-transformers' modules do not; use ONNX",
        )
    return {"largest difference of a vector's entries": error}
