"""What the loop does besides training: see test_trainer for the whole."""

import sys

import numpy as np
import pytest

from satkgc.training.loop import release_memory


def resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has what this calls")
def test_holes_between_what_is_kept_go_back_to_the_system() -> None:
    arrays = [np.ones(4096) for _ in range(6000)]  # 32 KiB each
    kept = arrays[::2]
    del arrays  # 94 MiB in holes
    before = resident()
    release_memory()
    assert before - resident() > 60
    assert all((array == 1).all() for array in kept)
