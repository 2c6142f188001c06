"""The training loop, top to bottom. It is started by:

satkgc train WN18RR --recipe satkgc --out runs/wn18rr
satkgc train WN18RR --recipe satkgc --out runs/wn18rr --resume
torchrun --nproc-per-node 4 -m satkgc train WN18RR --recipe satkgc --out runs/wn18rr
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from satkgc.models import Metrics, Model, StepContext
from satkgc.training.batches import Batches
from satkgc.training.checkpoint import Checkpoints
from satkgc.training.display import Display
from satkgc.training.interrupts import Interrupts
from satkgc.training.log import Log
from satkgc.training.state import State, clip, schedule, set_learning_rate
from satkgc.training.validation import Validation, validation_steps

Callback = Callable[[int, Model, Any, Metrics], None]
"""Called after every step with its number from 1 on, the model, the collated batch and the step's metrics."""


@dataclass
class Parts:
    """Everything the loop works with."""

    state: State
    steps: int  # of the whole run
    batches: Batches
    context: StepContext
    log: Log
    display: Display
    checkpoints: Checkpoints
    validation: Validation | None
    callbacks: Sequence[Callback] = ()


def run_loop(parts: Parts) -> str | None:
    """Train to the end, or until a signal or a limit stops it; returns why it stopped early."""
    state, config, batches, log = parts.state, parts.state.config, parts.batches, parts.log
    model, optimizer, trained = state.model.train(), state.optimizer, state.parameters
    processes = parts.context.processes
    validate_at = validation_steps(parts.steps, config.validations if parts.validation else 0)
    parts.display.start(state.step, parts.steps)

    with Interrupts(parts.display.say) as interrupts, closing(batches):
        if state.validated < state.step and state.step in validate_at and not validate(parts, interrupts):
            return interrupts.signal  # once more, before what was left for later was done
        began = saved = tick = time.perf_counter()
        for batch in batches:
            # 1. The loss of the global batch, and its gradients.
            rate = config.learning_rate * schedule(state.step, parts.steps, config.warmup_steps)
            set_learning_rate(optimizer, rate)
            with parts.context.rounded_products():
                metrics = model.backward(batch, parts.context)

            # 2. The weights move.
            metrics["gradient_norm"] = clip(trained, config.clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            state.step += 1
            for callback in parts.callbacks:
                callback(state.step, model, batch, metrics)

            # 3. What is due now? Processes agree on stopping, since none can go on alone; it costs, so not every step.
            now = time.perf_counter()
            state.seconds, tick = state.seconds + now - tick, now
            finished, log_now = state.step == parts.steps, state.step % config.log_steps == 0
            late = config.max_minutes is not None and now - began > 60 * config.max_minutes
            stop = interrupts.signal or ("training.max_minutes" if late else None)
            can_stop = batches.may_save(state.step) and (processes.world == 1 or log_now)
            stopping = can_stop and processes.any(stop is not None) and not finished
            save_now = finished or stopping or now - saved >= 60 * config.checkpoint_minutes
            save_now = save_now and batches.may_save(state.step)
            validate_now = state.step in validate_at

            # 4. The log. A loss that is not finite ends the run here, before anything is saved.
            log.add(state.step, metrics)
            record = None
            if log_now or save_now or validate_now:
                record = log.write(len(batch), batches.waited, {"lr": rate})
            parts.display.advance(state.step, record)

            # 5. A checkpoint, from which the run goes on as if it had never stopped.
            if save_now:
                save(parts)

            # 6. Validation chooses the best weights so far; a run that is to stop leaves it for when it goes on.
            if validate_now and not stopping and not validate(parts, interrupts if can_stop else None):
                stopping, stop = True, interrupts.signal
                if not save_now:
                    save(parts)
            if validate_now or save_now:
                saved = time.perf_counter() if save_now else saved
                tick = time.perf_counter()
                log.restart_clock()
            if log_now and processes.device.type == "cpu":
                release_memory()
            if stopping:
                return stop or "another process was told to stop"
    return None


def save(parts: Parts) -> None:
    """Write a checkpoint of this moment."""
    if parts.context.processes.first:
        state = parts.state
        parts.checkpoints.save(f"step-{state.step:08d}", state.tensors(), parts.batches.state(), state.facts())
        parts.checkpoints.prune()


def validate(parts: Parts, interrupts: Interrupts | None = None) -> bool:
    """Take filtered MRR on the validation triples; keep the weights if it is the best so far. False if interrupted.

    Several processes share it, and it is not to be interrupted: none can go on alone.
    """
    state, validation, processes = parts.state, parts.validation, parts.context.processes
    if validation is None:
        return True
    with parts.display.paused():
        free = interrupts is None or processes.world > 1
        metrics = validation() if free or interrupts is None else interrupts.unless_signalled(validation)
    if metrics is None:
        return False
    mrr = metrics["both"]["mrr"]
    best = state.best is None or mrr > state.best["mrr"]
    state.validated = state.step
    if best and state.config.select == "best":
        state.best = {"step": state.step, "mrr": mrr}
        if processes.first:
            parts.checkpoints.save(f"best-{state.step:08d}", {"weights": state.weights()}, {}, state.facts())
    parts.log.note({"step": state.step, "validation": metrics})
    parts.display.say(
        f"step {state.step}: validation MRR {mrr:.4f}{validation.candidates}{', the best so far' if best else ''}"
    )
    return True


def release_memory() -> None:
    """Hand freed memory back to the system, where the C library is glibc.

    Batches differ in size, and what one leaves free seldom fits the next: on a CPU a run of hundreds of steps would
    otherwise grow to twice what a step needs.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
