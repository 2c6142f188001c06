"""Which model a run has, and how good it is: what its folder says of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from satkgc.completion.info import ModelInfo, Quality, RelationRanking, RunVersion
from satkgc.kg import KnowledgeGraph
from satkgc.models import EncoderModelConfig
from satkgc.training import Config, RunFolder


def model_info(run: RunFolder) -> ModelInfo:
    """The model of a run."""
    config = run.config
    parts = list(config.experts.values()) or [config]
    backbones = tuple(dict.fromkeys(name for part in parts if (name := _backbone(part))))
    version = run.about.get("version")
    return ModelInfo(config.model.kind, config.recipe, backbones, tuple(config.experts), run.finished, version)


def about_run(run: RunFolder, kg: KnowledgeGraph) -> dict[str, Any]:
    """What its folder says of a run, by the fields of `CompleterInfo`."""
    return {"model": model_info(run), "quality": quality(run, kg), "run_version": run_version(run)}


def run_version(run: RunFolder) -> RunVersion:
    """How often it has been updated, and when last."""
    updates = run.updates
    return RunVersion(1 + len(updates), updates[-1]["at"] if updates else None)


def quality(run: RunFolder, kg: KnowledgeGraph) -> Quality | None:
    """As it was measured at the end of training; None where there was nothing to measure by."""
    report = run.metrics.get("valid")
    if not report:
        return None
    ids = report["breakdown"]["relation"].items()
    found = [(id, kg.relations.find(id), ranks["both"]) for id, ranks in ids]
    relations = [
        RelationRanking(*_ranking(both, both["count"] // 2), id, kg.relations.name(index))
        for id, index, both in found
        if index is not None
    ]
    relations.sort(key=lambda relation: -relation.triples)
    return Quality(*_ranking(report["both"], report["triples"]), report["candidates"], tuple(relations))


def _ranking(metrics: dict[str, Any], triples: int) -> tuple[int, float, float, float]:
    return int(triples), metrics["mrr"], metrics["hits@1"], metrics["hits@10"]


def _backbone(config: Config) -> str | None:
    if not isinstance(config.model, EncoderModelConfig):
        return None
    name = config.model.encoder.backbone
    return Path(name).name if Path(name).is_absolute() else name  # where it lay is nobody's business
