"""Steps replayed from a CUDA graph are the model's own, bit for bit; they can only be recorded on a GPU."""

from __future__ import annotations

import pytest
import torch

from satkgc.kg import KnowledgeGraph
from satkgc.models import EmbeddingModel, StepContext
from satkgc.processes import Processes
from satkgc.sampling import make_sampler
from satkgc.training import make_config
from satkgc.training.state import State, clip

CASES = {
    "complex": {"model.relation_loss": 1.0},
    "rotate": {"model.loss": "self-adversarial", "model.distance": "l2", "model.negatives": 8},
    "tucker": {"model.dim": 16},  # with dropout
}


def weights_after(recipe: str, steps: int, recorded: bool) -> dict[str, torch.Tensor]:
    """Of a model trained for so many steps, by recorded steps or by the model's own."""
    kg = KnowledgeGraph.load("wordnet-sample")
    overrides = {"model.dim": 20, "sampling.batch_size": 128, **CASES[recipe]}
    config = make_config(recipe, overrides=overrides)
    context = StepContext(0, torch.float32, Processes.join("cuda"), tf32=True)
    torch.manual_seed(0)
    model = EmbeddingModel(kg, config.model).to("cuda").train()
    model.prepare_training(context)
    state, sampler = State(model, config.training), make_sampler(kg, config.sampling, 0, model.needs)
    for step in range(steps):
        model._steps = model._steps if recorded else 0
        model.backward(model.collate(sampler.draw(step)), context)
        clip(state.parameters, 10.0)
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
    assert (model._recorded is not None) == recorded
    return {name: weights.clone() for name, weights in state.weights().items()}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("recipe", CASES)
def test_recorded_steps_are_the_models_own(recipe):
    own, recorded = (weights_after(recipe, 12, recorded) for recorded in (False, True))
    assert all(torch.equal(own[name], recorded[name]) for name in own)
