"""Commands on a disk that is full, and on one that may not be written: real ones, mounted for the test.

A command ends with one line; what was there before is as it was; with room again, it gives what it gives undisturbed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from little_world import little_world
from satkgc.cli import main
from satkgc.completion import verify_folder
from satkgc.kg import write_tsv
from satkgc.manifest import write_json

pytest_plugins = ["world"]

SIZE = 6 << 20


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only who may mount a file system can fill one")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path, free: int) -> None:
    """Leave so many bytes on the disk."""
    with (disk / "filler").open("wb") as file, suppress(OSError):
        while (left := os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize - free) > 0:
            file.write(bytes(min(left, 1 << 16)))
            file.flush()


def command(log: Path, *arguments: object, meanwhile: Callable[[int], None] = lambda process: None) -> tuple[int, str]:
    """The exit code of a command in a fork, and what it said on stderr."""
    child = os.fork()
    if child == 0:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["satkgc", *map(str, arguments)]
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
            code = 99
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    meanwhile(child)
    status = os.waitpid(child, 0)[1]
    assert os.WIFEXITED(status), f"{arguments[0]} died by signal {os.WTERMSIG(status)}"
    return os.WEXITSTATUS(status), log.read_text(errors="replace")


def state(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but locks and what is hidden: a preparation goes on there."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    parts = {path.relative_to(folder): path for path in files}
    return {str(name): path.read_bytes() for name, path in parts.items() if not any(p[0] == "." for p in name.parts)}


def copy_runs(prepared: Path, run: Path, index: bool) -> None:
    """Two runs that count as finished, with or without their index."""
    for copy in (run, run.parent / "second"):
        shutil.copytree(prepared, copy, ignore=None if index else shutil.ignore_patterns("index"))
        write_json(copy / "metrics.json", {"finished": True, "steps": 1, "minutes": 1.0, "seconds": 60.0})


def commands(run: Path, source: Path, out: Path, backbone: Path) -> dict[str, list[object]]:
    """Those that write, and where they write to."""
    tiny = [f"model.encoder.backbone={backbone}", "model.text.max_tokens=30", "sampling.batch_size=16"]
    tiny += ["training.validations=1", "training.device=cpu"]
    sets = [word for setting in tiny for word in ("--set", setting)]
    return {
        "import": ["kg", "import", source, out / "graph"],
        "train": ["train", source, "--out", out / "run", "--recipe", "simkgc", "--steps", 2, "--resume", *sets],
        "prepare": ["prepare", run, "--device", "cpu"],
        "propose": ["propose", run, out / "new.csv", "--n", 5, "--device", "cpu"],
        "export": ["export", run, out / "vectors", "--format", "npy", "--device", "cpu"],
        "ranks": ["evaluate", run, "--ranks", out / "ranks.parquet", "--device", "cpu"],
        "fuse": ["fuse", run, run.parent / "second", "--out", out / "fused", "--device", "cpu", "--resume"],
    }


@pytest.mark.parametrize("name", ["import", "train", "prepare", "propose", "export", "ranks", "fuse"])
def test_a_full_disk(prepared, disk, tmp_path, tiny_backbone, name):
    write_tsv(little_world(), tmp_path / "source")
    run = disk / "run"
    copy_runs(prepared, run, name != "prepare")
    before = state(disk)
    line = commands(run, tmp_path / "source", disk / "out", tiny_backbone)[name]
    code, refused = 2, 0
    for free in (0, 9_000, 60_000, 250_000, SIZE):
        fill(disk, free)
        code, said = command(tmp_path / "log", *line)
        (disk / "filler").unlink()
        if code == 0:
            break
        refused += 1
        assert_one_line(code, said)
        assert {key: value for key, value in state(disk).items() if key in before} == before
    assert code == 0, said
    assert refused
    assert verify_folder(run).altered == []


def assert_one_line(code: int, said: str) -> None:
    """What is wrong stands in the last line; before it there may be progress."""
    assert "Traceback" not in said, said
    assert code == 2, said
    assert said.splitlines()[-1].startswith("error: /"), said  # and where


@pytest.mark.parametrize("index", ["prepared", "unprepared"])
def test_a_disk_that_may_not_be_written(prepared, disk, tmp_path, tiny_backbone, index):
    write_tsv(little_world(), tmp_path / "source")
    copy_runs(prepared, disk / "run", index == "prepared")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    elsewhere = commands(disk / "run", tmp_path / "source", tmp_path / "out", tiny_backbone)
    there = commands(disk / "run", tmp_path / "source", disk / "out", tiny_backbone)
    for name, line in there.items():
        assert_one_line(*command(tmp_path / "log", *line)) if name != "prepare" else None
    for name in ("import", "propose", "export", "ranks"):
        code, said = command(tmp_path / "log", *elsewhere[name])
        if code:
            assert_one_line(code, said)
            assert index == "unprepared", said
    assert_one_line(*command(tmp_path / "log", *there["prepare"]))


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_run_without_an_index_is_served_or_refused_in_one_line(prepared, disk, tmp_path, how):
    copy_runs(prepared, disk / "run", False)
    if how == "full":
        fill(disk, 5_000)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

    def stop_when_ready(process: int) -> None:
        for _ in range(600):
            time.sleep(0.1)
            said = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
            if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return
            with suppress(OSError, IndexError):
                url = said.split("satkgc serves ")[1].split()[0]
                urllib.request.urlopen(f"{url}health", timeout=5)
                break
        os.kill(process, signal.SIGTERM)

    code, said = command(tmp_path / "log", "serve", disk / "run", "--port", 0, meanwhile=stop_when_ready)
    if code:
        assert_one_line(code, said)
    assert "Traceback" not in said, said
    assert {name for name in state(disk / "run") if name.startswith("index/")} == set()


@pytest.mark.parametrize("free", [0, 1 << 20])
def test_a_source_that_is_sorted_on_a_full_disk(disk, tmp_path, free):
    rows = [f"a-name-of-some-length-{7919 * i % 100_003},r,another-{104_729 * i % 99_991}" for i in range(40_000)]
    (tmp_path / "t.csv").write_text("\n".join(["head,relation,tail", *rows]))
    fill(disk, free)
    arguments = ["kg", "import", tmp_path / "t.csv", tmp_path / "out", "--memory", 0.1, "--spill", disk]
    code, said = command(tmp_path / "log", *arguments)
    assert code == 2
    assert said.strip().splitlines() == [
        f"error: {disk}: no space left to sort in; the source needs a few times its size there; free some, "
        "or choose another folder with --spill"
    ]
    assert [path.name for path in disk.iterdir()] == ["filler"]
    assert not (tmp_path / "out").exists()
