"""What a run leaves behind: the model, its validation metrics, its curves and a model card."""

from __future__ import annotations

import shutil
from typing import Any

from safetensors.torch import save_file

from satkgc.files import atomic_write
from satkgc.training.card import model_card
from satkgc.training.checkpoint import Damaged
from satkgc.training.curves import draw_curves
from satkgc.training.loop import Parts
from satkgc.training.run import Run, replace_folder, write_json

LARGE = 100_000_000  # bytes of checkpoints that are worth a word


def keep_model(run: Run, parts: Parts) -> None:
    """Write the best weights so far, or the last ones, to the run's model folder; they stay in the towers."""
    state, weights = parts.state, None
    if state.best_name is not None:
        try:
            tensors, _, _ = parts.checkpoints.read(parts.checkpoints.folder / state.best_name)
            weights = tensors["weights"]
        except Damaged as error:
            parts.display.say(f"the best weights are lost, the last ones are kept instead: {error}")
            state.best = None
    if weights is None:
        with state.average.applied():
            weights = {name: value.clone() for name, value in state.weights().items()}
    state.load_weights(weights)
    partial = run.folder / ".model.partial"
    shutil.rmtree(partial, ignore_errors=True)
    state.towers.save(partial)
    save_file({n: p.detach().cpu() for n, p in state.objective.named_parameters()}, partial / "objective.safetensors")
    replace_folder(partial, run.folder / "model")
    shutil.rmtree(run.folder / "index", ignore_errors=True)  # entity vectors of the weights before


def finish(run: Run, parts: Parts) -> None:
    """Measure the kept model on all validation triples; write metrics, curves and model card."""
    state = parts.state
    metrics: dict[str, Any] = {
        "finished": True,
        "steps": parts.steps,
        "kept_step": state.best["step"] if state.best else state.step,
        "training_minutes": round(state.seconds / 60, 3),
        "device": _device_name(parts),
        "ranks": parts.ranks.world,
    }
    if parts.validation is not None:
        report = parts.validation.of_all(state.towers, again=metrics["kept_step"] != state.step)
        metrics["valid"] = report.to_json()
        parts.display.say(f"validation MRR of the kept model, all triples: {metrics['valid']['both']['mrr']:.4f}")
    draw_curves(run.log(), run.folder / "curves.png")
    with atomic_write(run.folder / "README.md") as part:
        part.write_text(model_card(run, metrics, state.objective), encoding="utf-8")
    write_json(run.folder / "metrics.json", metrics)  # last: it says that the run is finished
    size = sum(file.stat().st_size for file in parts.checkpoints.folder.rglob("*") if file.is_file())
    if size > LARGE:
        parts.display.say(f"{parts.checkpoints.folder} holds {size / 1e9:.1f} GB that a finished run does not need")


def _device_name(parts: Parts) -> str:
    import torch

    device = parts.ranks.device
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
