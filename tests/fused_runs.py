"""A fused run at its smallest: a text model on the tiny backbone, ComplEx, and paths."""

from __future__ import annotations


def overrides(backbone, **more):
    """Settings with which all experts are trained in seconds."""
    text = {"model.encoder.backbone": str(backbone), "model.text.max_tokens": 30, "training.learning_rate": 1e-3}
    text |= {"sampling.batch_size": 16, "training.steps": 5, "training.validations": 2, "training.log_steps": 1}
    plain = {"model.dim": 8, "sampling.batch_size": 16, "training.steps": 6, "training.validations": 2}
    paths = {"model.dim": 4, "model.layers": 2, "sampling.batch_size": 16, "training.steps": 6}
    experts = {"text": text, "complex": plain | {"training.log_steps": 1}}
    experts["paths"] = paths | {"training.validations": 1, "training.log_steps": 1}
    named = {f"experts.{name}.{key}": value for name, own in experts.items() for key, value in own.items()}
    return {"training.device": "cpu", "training.checkpoint_minutes": 0, **named, **more}
