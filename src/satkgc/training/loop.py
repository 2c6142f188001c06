"""The training loop, top to bottom. It is started by:

satkgc train WN18RR --recipe satkgc --out runs/wn18rr
satkgc train WN18RR --recipe satkgc --out runs/wn18rr --resume
torchrun --nproc-per-node 4 -m satkgc train WN18RR --recipe satkgc --out runs/wn18rr
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import torch

from satkgc.processes import Processes
from satkgc.training.batches import Batches
from satkgc.training.checkpoint import Checkpoints
from satkgc.training.display import Display
from satkgc.training.interrupts import Interrupts
from satkgc.training.log import Log
from satkgc.training.memory import trim
from satkgc.training.optimizer import clip, schedule, set_learning_rate
from satkgc.training.state import State
from satkgc.training.step import backward
from satkgc.training.validate import Validation, validation_steps


@dataclass
class Parts:
    """Everything the loop works with."""

    state: State
    steps: int  # of the whole run
    batches: Batches
    ranks: Processes
    log: Log
    display: Display
    checkpoints: Checkpoints
    validation: Validation | None


def run_loop(parts: Parts) -> str | None:
    """Train to the end, or until asked to stop; returns why it stopped early."""
    state, config, ranks, batches, log = parts.state, parts.state.config, parts.ranks, parts.batches, parts.log
    towers, objective, optimizer, trained = state.towers.train(), state.objective, state.optimizer, state.parameters
    validate_at = validation_steps(parts.steps, config.validations if parts.validation else 0)
    how = {"seed": config.seed, "keep": config.chunk_tokens is None, "precision": _precision(config.precision, ranks)}
    parts.display.start(state.step, parts.steps)

    with Interrupts(parts.display.say) as interrupts, closing(batches):
        if state.validated < state.step and state.step in validate_at and not validate(parts, interrupts):
            return interrupts.asked  # once more, before what was left for later was done
        began = saved = tick = time.perf_counter()
        for samples in batches:
            # 1. The loss of the global batch, and its gradients.
            rate = schedule(state.step, parts.steps, config.warmup_steps)
            set_learning_rate(optimizer, rate)
            loss = backward(towers, objective, samples, ranks=ranks, **how)  # type: ignore[arg-type]

            # 2. The weights move.
            norm = clip(trained, config.clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            state.step += 1
            state.average.update(state.step)

            # 3. What is due now? Processes agree on stopping, since none can go on alone; asking costs, so not every step.
            now = time.perf_counter()
            state.seconds, tick = state.seconds + now - tick, now
            finished, log_now = state.step == parts.steps, state.step % config.log_steps == 0
            late = config.max_minutes is not None and now - began > 60 * config.max_minutes
            stop = interrupts.asked or ("training.max_minutes" if late else None)
            can_stop = batches.may_save(state.step) and (ranks.world == 1 or log_now)
            stopping = can_stop and ranks.any(stop is not None) and not finished
            save_now = finished or stopping or now - saved >= 60 * config.checkpoint_minutes
            save_now = save_now and batches.may_save(state.step)
            validate_now = state.step in validate_at

            # 4. The log. A loss that is no number ends the run here, before anything is saved.
            log.add(state.step, loss, norm)
            record = None
            if log_now or save_now or validate_now:
                facts = {"lr": rate * config.learning_rate, "tau": objective.temperature.item()}
                record = log.write(len(samples), batches.waited, {**facts, "beta": objective.beta.item()})
            parts.display.advance(state.step, record)

            # 5. A checkpoint, from which the run goes on as if it had never stopped.
            if save_now:
                save(parts)

            # 6. Validation chooses the best weights so far; a run that is asked to stop leaves it for when it goes on.
            if validate_now and not stopping and not validate(parts, interrupts if can_stop else None):
                stopping, stop = True, interrupts.asked
                if not save_now:
                    save(parts)
            if validate_now or save_now:
                saved = time.perf_counter() if save_now else saved
                tick = time.perf_counter()
                log.restart_clock()
            if log_now and ranks.device.type == "cpu":
                trim()
            if stopping:
                return stop or "another rank was asked to stop"
    return None


def save(parts: Parts) -> None:
    """Write a checkpoint of this moment."""
    if parts.ranks.first:
        state = parts.state
        parts.checkpoints.save(f"step-{state.step:08d}", state.tensors(), parts.batches.state(), state.facts())
        parts.checkpoints.prune()


def validate(parts: Parts, interrupts: Interrupts | None = None) -> bool:
    """Take filtered MRR on the validation triples; keep the weights if it is the best so far. False if interrupted.

    With several ranks it is not to be interrupted: the others wait for the first.
    """
    state, validation = parts.state, parts.validation
    if validation is None or not parts.ranks.first:
        return True
    measure = partial(validation, state.towers)
    with state.average.applied():
        with parts.display.paused():
            metrics = measure() if interrupts is None or parts.ranks.world > 1 else interrupts.unless_asked(measure)
        if metrics is None:
            return False
        mrr = metrics["both"]["mrr"]
        best = state.best is None or mrr > state.best["mrr"]
        state.validated = state.step
        if best and state.config.select == "best":
            state.best = {"step": state.step, "mrr": mrr}
            parts.checkpoints.save(f"best-{state.step:08d}", {"weights": state.weights()}, {}, state.facts())
    parts.log.note({"step": state.step, "validation": metrics})
    parts.display.say(f"step {state.step}: validation MRR {mrr:.4f}{', the best so far' if best else ''}")
    return True


def _precision(setting: str, ranks: Processes) -> torch.dtype:
    half = setting == "bfloat16" or (setting == "auto" and ranks.device.type == "cuda")
    return torch.bfloat16 if half else torch.float32
