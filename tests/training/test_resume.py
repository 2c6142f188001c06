"""A run that was killed, at whatever moment, ends with the same bits as one that was not; two processes are as one."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from satkgc.training.log import read_log
from tasks import small_graph

STEPS = 24


@pytest.fixture(scope="module")
def worker():
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture(scope="module")
def job(tiny_backbone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    small_graph().save(folder / "graph")
    return {
        "kg": str(folder / "graph"),
        "resume": True,
        "output": str(folder / "output.txt"),
        "recipe": "satkgc-adjusted",
        "overrides": {
            "training.keep_checkpoints": True,
            "model.encoder.backbone": str(tiny_backbone),
            "sampling.batch_size": 16,
            "model.text.max_tokens": 30,
            "training.steps": STEPS,
            "training.learning_rate": 1e-3,
            "training.validations": 3,
            "training.checkpoint_minutes": 0,
            "training.log_steps": 1,
        },
    }


def wait_for(out, step):
    """Until the checkpoint of a step is there."""
    deadline = time.monotonic() + 100
    while not (out / "checkpoints" / f"step-{step:08d}").exists():
        assert time.monotonic() < deadline, "no such checkpoint"
        time.sleep(0.002)


class Child:
    """One training process."""

    def __init__(self, worker, job, out):
        self.worker, self.out = worker, Path(out)
        worker.stdin.write(json.dumps(job | {"out": str(out)}) + "\n")
        worker.stdin.flush()
        self.pid = int(worker.stdout.readline())

    def wait_for(self, step):
        wait_for(self.out, step)

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        """The exit code, or minus the signal."""
        return os.waitstatus_to_exitcode(int(self.worker.stdout.readline()))


@pytest.fixture(scope="module")
def whole(worker, job, tmp_path_factory):
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert Child(worker, job, out).end() == 0, Path(job["output"]).read_text()
    return out


def assert_same_run(one: Path, other: Path) -> None:
    """The same bits: last checkpoint, kept model, metrics and the log but for its times."""
    names = [f"checkpoints/step-{STEPS:08d}/{part}" for part in ("weights", "optimizer")]
    for name in [*names, "model/query/model", "model/entity/model", "model/loss"]:
        left, right = load_file(one / f"{name}.safetensors"), load_file(other / f"{name}.safetensors")
        assert left.keys() == right.keys()
        for key, value in left.items():
            assert torch.equal(value, right[key]), (name, key)
    logs = [read_log(run / "log.jsonl") for run in (one, other)]
    assert len(logs[0]) == STEPS + 3
    for left, right in zip(*logs, strict=True):
        for key in left.keys() - {"triples_per_second", "data_wait"}:
            assert left[key] == right[key]
    assert (one / "metrics.json").exists()


def test_after_kill_9_at_any_moment(worker, job, whole, tmp_path):
    out = tmp_path / "killed"
    chance = random.Random(5)
    for target in (1, 7, 13, 22):  # and whatever the process is doing up to 40 ms after
        child = Child(worker, job, out)
        child.wait_for(target)
        time.sleep(chance.uniform(0, 0.04))
        child.signal(signal.SIGKILL)
        assert child.end() == -signal.SIGKILL
    child = Child(worker, job, out)
    assert child.end() == 0, Path(job["output"]).read_text()
    assert_same_run(out, whole)


def test_an_embedding_run_after_kill_9(worker, job, tmp_path):
    left_out = ("model.encoder.backbone", "model.text.max_tokens")
    overrides = {name: value for name, value in job["overrides"].items() if name not in left_out}
    own = job | {"recipe": "rotate-saam", "overrides": overrides | {"model.dim": 8, "training.learning_rate": 0.1}}
    assert Child(worker, own, tmp_path / "whole").end() == 0, Path(job["output"]).read_text()
    for target in (2, 11):
        child = Child(worker, own, tmp_path / "killed")
        child.wait_for(target)
        child.signal(signal.SIGKILL)
        assert child.end() == -signal.SIGKILL
    assert Child(worker, own, tmp_path / "killed").end() == 0, Path(job["output"]).read_text()
    for name in (f"checkpoints/step-{STEPS:08d}/weights", f"checkpoints/step-{STEPS:08d}/optimizer", "model/model"):
        left, right = (load_file(tmp_path / run / f"{name}.safetensors") for run in ("whole", "killed"))
        assert left.keys() == right.keys()
        assert all(torch.equal(value, right[key]) for key, value in left.items()), name
    losses = [[r["loss"] for r in read_log(tmp_path / run / "log.jsonl") if "loss" in r] for run in ("whole", "killed")]
    assert len(losses[0]) == STEPS
    assert losses[0] == losses[1]


def test_after_stops_of_every_kind(worker, job, whole, tmp_path):
    out, output = tmp_path / "stopped", Path(job["output"])
    output.write_text("")
    limited = job | {"overrides": job["overrides"] | {"training.max_minutes": 1e-6}}
    assert Child(worker, limited, out).end() == 3
    assert [path.name for path in (out / "checkpoints").glob("step-*")] == ["step-00000001"]

    unlimited = job | {"overrides": job["overrides"] | {"training.max_minutes": None}}
    for number, target in ((signal.SIGTERM, 4), (signal.SIGINT, 9), (signal.SIGHUP, 13)):
        child = Child(worker, unlimited, out)
        child.wait_for(target)
        child.signal(number)
        assert child.end() == 128 + number
        assert number.name in output.read_text()
        assert (out / "model" / "tokenizer").exists()
        assert not (out / "metrics.json").exists()

    newest = max((out / "checkpoints").glob("step-*"))
    content = bytearray((newest / "weights.safetensors").read_bytes())
    content[-5] ^= 1
    (newest / "weights.safetensors").write_bytes(content)
    assert Child(worker, unlimited, out).end() == 0
    said = output.read_text()
    assert "passing over a damaged checkpoint" in said
    assert newest.name in said
    assert f"going on after step {int(newest.name[-8:]) - 1} of {STEPS}" in said
    assert_same_run(out, whole)


EXACT = {"model.encoder.dropout": 0.0, "training.steps": 8, "model.encoder.chunk_tokens": 128}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def one(worker, job, tmp_path_factory):
    """A run by one process that others do in several."""
    out = tmp_path_factory.mktemp("runs") / "one"
    assert Child(worker, job | {"overrides": job["overrides"] | EXACT}, out).end() == 0, Path(job["output"]).read_text()
    return out


def test_two_processes_train_as_one_and_one_goes_on_for_two(worker, job, one, tmp_path):
    exact = job["overrides"] | EXACT
    logs, two = [], {"world": 2, "port": free_port()}
    stop = {"overrides": exact | {"training.max_minutes": 1e-9}}
    assert Child(worker, job | stop | two, tmp_path / "two, then one").end() == 3, Path(job["output"]).read_text()
    for name, several in (("two", two), ("two, then one", {})):
        go_on = {"overrides": exact | {"training.max_minutes": None}}
        child = Child(worker, job | go_on | several, tmp_path / name)
        assert child.end() == 0, Path(job["output"]).read_text()
        logs.append(read_log(tmp_path / name / "log.jsonl"))
    logs.insert(0, read_log(one / "log.jsonl"))
    assert [len([record for record in log if "loss" in record]) for log in logs] == [8, 8, 8]
    for alone, *others in zip(*logs, strict=True):
        for other in others:
            if "validation" in alone:  # taken by both processes together
                assert other["validation"]["both"]["mrr"] == pytest.approx(alone["validation"]["both"]["mrr"], rel=1e-2)
                continue
            for key in ("loss", "gradient_norm"):
                assert other[key] == pytest.approx(alone[key], rel=1e-3)
            assert other["metrics"] == pytest.approx(alone["metrics"], rel=1e-3)
            assert set(other["metrics"]) >= {"temperature", "beta"}
    valid = [json.loads((run / "metrics.json").read_text()) for run in (one, tmp_path / "two")]
    assert [metrics["ranks"] for metrics in valid] == [1, 2]
    assert valid[1]["valid"]["both"]["mrr"] == pytest.approx(valid[0]["valid"]["both"]["mrr"], rel=1e-2)


def started_by(torchrun):
    """The training process that a torchrun has started."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        for pid in Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children").read_text().split():
            if b"satkgc" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        time.sleep(0.02)
    raise AssertionError("it started nothing")


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_machine_that_dies_ends_the_run_and_four_processes_go_on_where_it_was(worker, job, one, tmp_path):
    """Two machines of one process each, both here; then the same run by four processes of one machine."""
    out, port = tmp_path / "machines", free_port()
    overrides = job["overrides"] | EXACT
    recipe = ["--recipe", job["recipe"], "--out", str(out), "--resume"]
    for name, value in overrides.items():
        recipe += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    address = ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    machines = []
    for number in (0, 1):
        torchrun = ["torch.distributed.run", "--nnodes", "2", "--node-rank", str(number), *address]
        with (tmp_path / f"{number}.txt").open("w") as said:
            command = [sys.executable, "-m", *torchrun, "-m", "satkgc", "train", job["kg"], *recipe]
            machines.append(subprocess.Popen(command, stdout=said, stderr=said))
    wait_for(out, 3)
    os.kill(started_by(machines[1]), signal.SIGKILL)
    assert [machine.wait(100) for machine in machines] == [1, 1]
    assert "Signal 9" in (tmp_path / "1.txt").read_text()
    said = (tmp_path / "0.txt").read_text()
    assert "error: another process of this run has ended, so this one ends too (" in said
    assert "the same command goes on, train with --resume" in said

    four = {"world": 4, "port": port, "overrides": overrides}
    assert Child(worker, job | four, out).end() == 0, Path(job["output"]).read_text()
    logs = [[record for record in read_log(run / "log.jsonl") if "loss" in record] for run in (one, out)]
    assert [record["step"] for record in logs[0]] == [record["step"] for record in logs[1]]
    for alone, other in zip(*logs, strict=True):
        for key in ("loss", "gradient_norm"):
            assert other[key] == pytest.approx(alone[key], rel=1e-3)
    assert json.loads((out / "metrics.json").read_text())["ranks"] == 4
