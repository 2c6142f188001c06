"""A training step recorded once as a CUDA graph, then replayed: one launch in the place of hundreds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from satkgc.models.model import Metrics

if TYPE_CHECKING:
    from satkgc.models.embeddings.model import EmbeddingBatch, EmbeddingModel


class RecordedStep:
    """The gradients of a model's loss on batches of one shape. Steps are bit for bit those of the model itself."""

    def __init__(self, model: EmbeddingModel, batch: EmbeddingBatch) -> None:
        """Record the step of this batch; it has to have been done before, so that libraries are set up."""
        self.batch = batch.to(model.device)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.graph = torch.cuda.CUDAGraph()
        for parameter in self.parameters:
            parameter.grad = None  # so that the gradients are memory of the graph
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):  # other threads draw batches meanwhile
            loss, metrics = model.loss(self.batch)
            loss.backward()  # type: ignore[no-untyped-call]
        self.gradients = [parameter.grad for parameter in self.parameters]
        self.metrics: Metrics = {"loss": loss.detach(), **metrics}

    def backward(self, batch: EmbeddingBatch) -> Metrics:
        """Set the gradients of a batch of the recorded shape."""
        self.batch.ids.copy_(batch.ids, non_blocking=True)
        if self.batch.negatives is not None and batch.negatives is not None:
            self.batch.negatives.copy_(batch.negatives, non_blocking=True)
        self.graph.replay()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        return {name: value.clone() for name, value in self.metrics.items()}  # the next step writes over them
