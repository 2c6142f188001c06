"""The model card of an export: what it is, how good, how to use it."""

from __future__ import annotations

from typing import Any

from satkgc.text import TextConfig
from satkgc.training import Run

USE = {
    "sentence-transformers": """```python
from sentence_transformers import SentenceTransformer

query, entity = SentenceTransformer("query"), SentenceTransformer("entity")
asked = query.encode([("{text}", "{relation}")])  # a pair: the head's text, the relation's
candidates = entity.encode(["{text}"])
scores = asked @ candidates.T
```""",
    "onnx": """```python
import onnxruntime
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("tokenizer")
tokens = tokenizer("{text}", "{relation}", truncation="only_first", max_length={tokens}, return_tensors="np")
(asked,) = onnxruntime.InferenceSession("query.onnx").run(None, dict(tokens))
tokens = tokenizer("{text}", truncation=True, max_length={tokens}, return_tensors="np")
(candidate,) = onnxruntime.InferenceSession("entity.onnx").run(None, dict(tokens))
score = asked @ candidate.T
```""",
    "parquet": """```python
import pyarrow.parquet as pq

table = pq.read_table("entities.parquet")  # id, name, text, vector
```""",
    "npy": """```python
import numpy as np

vectors = np.load("entities.npy", mmap_mode="r")  # row i belongs to line i of ids.txt
```""",
}


def model_card(run: Run, format: str, facts: dict[str, Any]) -> str:
    """Markdown for people who get the folder and nothing else."""
    config, kg = run.config, run.kg
    shown = {"text": f"{kg.entities.name(0)}: …", "relation": kg.relations.name(0), "tokens": config.text.max_tokens}
    use = USE[format]
    for name, value in shown.items():
        use = use.replace(f"{{{name}}}", str(value).replace('"', "'"))
    measured = "\n".join(
        f"- {name}: {value:.3g}" if isinstance(value, float) else f"- {name}: {value:,}"
        for name, value in facts.items()
    )
    return f"""---
library_name: {format if format == "sentence-transformers" else "satkgc"}
tags: [knowledge-graph, link-prediction]
---

# {kg.name}: knowledge graph completion by text

Two encoders, trained together. One reads a head and a relation, the other an entity; the cosine of their vectors says
how well the entity completes the triple. Exported as {format} from a run of satkgc {run.about.get("version", "")}
(recipe {config.recipe}).

## Data

{kg.num_entities:,} entities, {kg.num_relations:,} relations; {len(kg.train):,} triples for training,
{len(kg.valid):,} for validation, {len(kg.test):,} for testing. Backbone: {config.encoder.backbone}.

## Measured

{_metrics(run)}
{measured}

## Use

{use}

An entity's text is `name: description`{_neighbours(config.text)}. An inverse question puts "inverse " before the
relation. Texts are cut to {config.text.max_tokens} tokens, the head's first. Vectors have length 1.

## Intended use and limits

Suggesting missing triples of this graph, or of others about the same matters, to people who check them. It knows what
its texts say; what is false or one-sided in them comes back. A cosine is no probability.
"""


def _neighbours(text: TextConfig) -> str:
    if not text.max_neighbours:
        return ""
    if text.neighbours_per_relation:
        example = "`; hypernym : dog , wolf ; has part : paw`"
        many = f"neighbours by relation, up to {text.neighbours_per_relation} of each: {example}"
    else:
        many = f"the names of up to {text.neighbours} neighbours"
    return f"; a description of fewer than\n{text.short_words} words is followed by {many}"


def _metrics(run: Run) -> str:
    report = run.metrics.get("valid")
    if not report:
        return "The run has no validation metrics."
    names = ("mrr", "hits@1", "hits@3", "hits@10")
    rows = [
        f"| {way} | " + " | ".join(f"{report[way][name]:.3f}" for name in names) + " |"
        for way in ("head", "tail", "both")
    ]
    head = "| validation | MRR | Hits@1 | Hits@3 | Hits@10 |\n|---|---|---|---|---|\n"
    return f"Filtered ranks among {report['candidates']} candidates:\n\n{head}" + "\n".join(rows) + "\n"
