"""Each tower as a folder that `SentenceTransformer(...)` loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from satkgc.errors import SatkgcError
from satkgc.export.strings import entity_strings, sample_pairs
from satkgc.models.text.backbone import quiet
from satkgc.training import Run

TOLERANCE = 1e-4  # what two orders of summation may differ by


def write_sentence_transformers(run: Run, out: Path) -> dict[str, Any]:
    """Write query/ and entity/, load both again and compare their vectors with the run's own."""
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Normalize, Pooling, Transformer
    except ImportError as missing:
        raise SatkgcError("sentence-transformers is not installed", remedy="pip install 'satkgc[export]'") from missing
    towers = run.towers()
    config = run.config.text
    for name, tower in (("query", towers.query), ("entity", towers.entity)):
        plain = out / f".{name}"  # a folder of transformers' own, for the module to start from
        tower.model.save_pretrained(plain)
        towers.tokenizer.save_pretrained(plain)
        # A pair's first text, the head, is what gets cut: the relation stays whole.
        cut = {"text": {"truncation": "only_first"}}
        with quiet():
            words = Transformer(str(plain), max_seq_length=config.max_tokens, processing_kwargs=cut)
        pooling = Pooling(towers.dim, pooling_mode=towers.config.pooling)
        SentenceTransformer(modules=[words, pooling, Normalize()], device="cpu").save(
            str(out / name), create_model_card=False
        )
        for file in plain.iterdir():
            file.unlink()
        plain.rmdir()
    texts, sep = run.texts(towers), towers.tokenizer.sep_token or ""
    pairs, queries = sample_pairs(run.kg, config, sep)
    entities = list(range(min(16, run.kg.num_entities)))
    here = [
        towers.encode_queries(texts.queries(*zip(*queries, strict=True)), progress=False),
        towers.encode_entities(texts.entities(entities), progress=False),
    ]
    strings: list[Any] = [pairs, list(entity_strings(run.kg, config, sep, 0, len(entities)))]
    with quiet():
        there = [
            SentenceTransformer(str(out / name), device="cpu").encode(given, show_progress_bar=False)
            for name, given in zip(("query", "entity"), strings, strict=True)
        ]
    error = max(float(np.abs(a - b).max()) for a, b in zip(here, there, strict=True))
    if error > TOLERANCE:
        raise SatkgcError(
            f"the exported towers' vectors differ by {error:.2g}",
            remedy="the backbone does something that sentence-transformers' modules do not; use ONNX",
        )
    return {"largest difference of a vector's entries": error}
