"""Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).

A number is a function of (seed, purpose, step, index) alone, so that a step draws the same batch in any process and
on any thread, and nothing needs a generator's state. The seed is the cipher's key; the other three are its counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# What a number is drawn for: two purposes never share numbers.
CENTRE, START, WALK, SELECT, SHARE, FILL, PERMUTE, PATH, CHAIN, HEADED, NEGATIVES = range(11)

_U32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)


@njit(cache=True, nogil=True)
def philox(key, c0, c1, c2, c3):  # type: ignore[no-untyped-def]
    """Four 32-bit words (as uint64) from a 64-bit key and a counter of four 32-bit words."""
    k0, k1 = key & _LOW, key >> _U32
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> _U32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _U32) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@njit(cache=True, nogil=True)
def words(seed, purpose, step, index):  # type: ignore[no-untyped-def]
    """The four words of one draw."""
    step, index = np.uint64(step), np.uint64(index)
    return philox(np.uint64(seed), index & _LOW, np.uint64(purpose), step & _LOW, step >> _U32)


@njit(cache=True, nogil=True)
def below(high, low, n):  # type: ignore[no-untyped-def]
    """A whole number in [0, n) from two words, n < 2**31, and what is left of them: 32 bits of an independent coin."""
    n = np.uint64(n)
    product = high * n + ((low * n) >> _U32)  # the upper 64 bits of (64-bit word) x n: off by at most n / 2**64
    return np.int64(product >> _U32), product & _LOW


@njit(cache=True, nogil=True)
def shuffle(items, count, seed, purpose, step):  # type: ignore[no-untyped-def]
    """Bring a uniform random choice of `count` items, in random order, to the front (Fisher-Yates)."""
    for i in range(count):
        a, b, _, _ = words(seed, purpose, step, i)
        j = i + below(a, b, len(items) - i)[0]
        items[i], items[j] = items[j], items[i]


@njit(cache=True, nogil=True)
def uniform(count, n, seed, purpose, step):  # type: ignore[no-untyped-def]
    """Whole numbers in [0, n), n < 2**31, independent of each other.  # (count,)"""
    numbers = np.empty(count, np.int32)
    for i in range(0, count, 2):
        a, b, c, d = words(seed, purpose, step, i // 2)
        numbers[i] = below(a, b, n)[0]
        if i + 1 < count:
            numbers[i + 1] = below(c, d, n)[0]
    return numbers


def seed_word(seed: int) -> Any:
    """The seed as the key that the kernels take."""
    return np.uint64(seed % 2**64)
