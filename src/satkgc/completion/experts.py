"""Who said it: the part that each expert of a fused model has in an answer."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Float32, Int32
from satkgc.completion.answer import ExpertShare
from satkgc.completion.calibration import COMPETITORS
from satkgc.completion.retriever import FusedRetriever, Retriever
from satkgc.models import EncoderModel, FusedModel, Model, PathModel, Questions


def expert_shares(
    retriever: Retriever, question: Questions, ids: Int32, competitors: Int32, known: Int32
) -> list[tuple[ExpertShare, ...]]:
    """Of one question's answers, against its best candidates that are not known; nothing of a model without experts."""
    if not isinstance(retriever, FusedRetriever) or not len(ids):
        return [()] * len(ids)
    rivals = competitors[:COMPETITORS]
    added, log_shares, compared = retriever.opinions(question, np.concatenate([ids, rivals])[None].astype(np.int32))
    answers, others = added[:, 0, : len(ids)], added[:, 0, len(ids) :]
    shares = []
    for i, id in enumerate(ids.tolist()):
        lift = answers[:, i] - _mean(others[:, rivals != id])
        size = float(np.nansum(np.abs(lift))) or 1.0
        experts = []
        for n, name in enumerate(retriever.model.names):
            if np.isnan(lift[n]):
                experts.append(ExpertShare(name, None, None))
            else:
                experts.append(ExpertShare(name, float(lift[n]) / size, _rank(log_shares[n, 0], compared, id, known)))
        shares.append(tuple(experts))
    return shares


def text_model(model: Model) -> EncoderModel | None:
    """The text model that a model is, or the first among its experts."""
    return next((part for part in _parts(model) if isinstance(part, EncoderModel)), None)


def path_model(model: Model) -> PathModel | None:
    """The path model that a model is, or the first among its experts."""
    return next((part for part in _parts(model) if isinstance(part, PathModel)), None)


def _parts(model: Model) -> list[Model]:
    return [model.expert(name) for name in model.names] if isinstance(model, FusedModel) else [model]


def _mean(parts: Float32) -> Float32:
    """Of each expert over the candidates that it has something to say about; zero where these are none.  # (n,)"""
    count = np.isfinite(parts).sum(1)
    return np.asarray(np.nansum(parts, axis=1) / np.maximum(count, 1), np.float32)


def _rank(log_shares: Float32, compared: Int32, id: int, known: Int32) -> int | None:
    """Of an entity among those compared, without known answers; one that is not among them has none."""
    place = int(np.searchsorted(compared, id))
    if place == len(compared) or compared[place] != id:
        return None
    better = log_shares > log_shares[place]
    better[np.isin(compared, known)] = False
    return 1 + int(better.sum())
