"""The model card of an export: what it is, how good, how to use it."""

from __future__ import annotations

from typing import Any

from satkgc.export.embeddings import describe_form
from satkgc.models import EmbeddingConfig, EncoderModelConfig, FrozenConfig
from satkgc.text import TextConfig
from satkgc.training import RunFolder

TEXT = """\
Two encoders, trained together. One reads a head and a relation, the other an entity; the cosine of their vectors says
how well the entity completes the triple."""

FROZEN = """\
A pretrained encoder, left as it was, read the entities' texts; small heads were trained on its vectors. Inner products
of vectors say how well an entity fits."""

USE = {
    "sentence-transformers": """```python
from sentence_transformers import SentenceTransformer

query, entity = SentenceTransformer("query"), SentenceTransformer("entity")
questions = query.encode([("{text}", "{relation}")])  # a pair: the head's text, the relation's
candidates = entity.encode(["{text}"])
scores = questions @ candidates.T
```""",
    "onnx": """```python
import onnxruntime
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("tokenizer")
tokens = tokenizer("{text}", "{relation}", truncation="only_first", max_length={tokens}, return_tensors="np")
(question,) = onnxruntime.InferenceSession("query.onnx").run(None, dict(tokens))
tokens = tokenizer("{text}", truncation=True, max_length={tokens}, return_tensors="np")
(candidate,) = onnxruntime.InferenceSession("entity.onnx").run(None, dict(tokens))
score = question @ candidate.T
```""",
    "parquet": """```python
import pyarrow.parquet as pq

table = pq.read_table("entities.parquet")  # {columns}
```""",
    "npy": """```python
import numpy as np

vectors = np.load("entities.npy", mmap_mode="r")  # row i belongs to line i of ids.txt
```""",
}


def model_card(run: RunFolder, format: str, checks: dict[str, Any]) -> str:
    """Markdown for people who get the folder and nothing else."""
    config, kg, model = run.config, run.kg, run.config.model
    text = model.text if isinstance(model, EncoderModelConfig) else None
    is_text = text is not None
    shown: dict[str, object] = {"text": f"{kg.entities.name(0)}: …", "relation": kg.relations.name(0)}
    shown |= {"tokens": text.max_tokens} if text else {}
    shown |= {"columns": "id, name, text, vector" if is_text else "id, name, vector"}
    backbone = f" Backbone: {model.encoder.backbone}." if isinstance(model, EncoderModelConfig) else ""
    inference = f", {len(kg.inference):,} to answer from alone" if len(kg.inference) else ""
    use = USE[format]
    for name, value in shown.items():
        use = use.replace(f"{{{name}}}", str(value).replace('"', "'"))
    measured = "\n".join(
        f"- {name}: {value:.3g}" if isinstance(value, float) else f"- {name}: {value:,}"
        for name, value in checks.items()
    )
    what = TEXT if is_text else f"A model of kind {model.kind}: inner products of vectors say how well an entity fits."
    if isinstance(model, FrozenConfig):
        what = FROZEN
    form = "Vectors have length 1."
    if isinstance(model, EmbeddingConfig):
        what = "An embedding of each entity and relation, learnt from the triples alone."
        form = describe_form(model)
    return f"""---
library_name: {format if format == "sentence-transformers" else "satkgc"}
tags: [knowledge-graph, link-prediction]
---

# {kg.name}: knowledge graph completion{" by text" if is_text else ""}

{what} Exported as {format} from a run of satkgc {run.about.get("version", "")}
(recipe {config.recipe}).

## Data

{kg.num_entities:,} entities, {kg.num_relations:,} relations; {len(kg.train):,} triples for training,
{len(kg.valid):,} for validation, {len(kg.test):,} for testing{inference}.{backbone}

## Measured

{_metrics(run)}
{measured}

## Use

{use}

{_reads(text) if text else ""}{form}

## Intended use and limits

Suggesting missing triples of this graph, or of others about the same matters, to people who check them. It knows what
its {"texts" if is_text else "triples"} say; what is false or one-sided in them comes back. A score is no probability.
"""


def _reads(text: TextConfig) -> str:
    """What a text is."""
    neighbours = ""
    if text.max_neighbours:
        if text.neighbours_per_relation:
            example = "`; hypernym : dog , wolf ; has part : paw`"
            many = f"neighbours by relation, up to {text.neighbours_per_relation} of each: {example}"
        else:
            many = f"the names of up to {text.neighbours} neighbours"
        neighbours = f"; a description of fewer than\n{text.short_words} words is followed by {many}"
    return f"""An entity's text is `name: description`{neighbours}. An inverse question puts "inverse " before the
relation. Texts are cut to {text.max_tokens} tokens, the head's first. """


def _metrics(run: RunFolder) -> str:
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
