"""Random numbers: the published vectors, uniformity, and independence of purposes."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from chisquare import assert_follows

from satkgc.sampling.philox import below, philox, seed_word, shuffle, uniform, words

# Known answers of the Random123 library for philox4x32-10: counter, key, result.
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_the_published_vectors_come_out(counter, key, result):
    key = np.uint64(key[0] | key[1] << 32)
    assert [int(word) for word in philox(key, *(np.uint64(c) for c in counter))] == result


def test_every_part_of_the_key_matters():
    base = words(np.uint64(1), 2, 3, 4)
    assert base == words(np.uint64(1), 2, 3, 4)
    others = [(1, 2, 3, 5), (1, 2, 4, 4), (1, 3, 3, 4), (2, 2, 3, 4), (1, 2, 3 + 2**32, 4), (1 + 2**40, 2, 3, 4)]
    assert len({base, *(words(np.uint64(s), p, step, i) for s, p, step, i in others)}) == 7


def test_negative_and_huge_seeds_are_keys_too():
    assert seed_word(-1) == np.uint64(2**64 - 1)
    assert seed_word(2**64 + 5) == np.uint64(5)


def test_below_is_uniform_and_its_coin_does_not_depend_on_it():
    seen = Counter()
    for i in range(40_000):
        a, b, _, _ = words(np.uint64(7), 0, 0, i)
        number, coin = below(a, b, 7)
        seen[int(number), int(coin) * 4 >> 32] += 1
    assert_follows(seen, {(n, q): 1 / 28 for n in range(7) for q in range(4)}, 40_000)


def test_below_is_the_exact_share_of_64_bits():
    rng = np.random.default_rng(1)
    for high, low, n in rng.integers(0, [2**32, 2**32, 2**31], size=(500, 3)):
        number, coin = below(np.uint64(high), np.uint64(low), n)
        assert int(number) << 32 | int(coin) == (int(high) << 32 | int(low)) * int(n) >> 32


def test_below_reaches_both_ends_of_a_large_range():
    top, zero = np.uint64(2**32 - 1), np.uint64(0)
    assert below(zero, zero, 2**31 - 1)[0] == 0
    assert below(top, top, 2**31 - 1)[0] == 2**31 - 2


def test_every_order_is_equally_likely():
    seen = Counter()
    for step in range(24_000):
        items = np.arange(4, dtype=np.int32)
        shuffle(items, 4, np.uint64(1), 3, step)
        seen[tuple(items.tolist())] += 1
    assert_follows(seen, dict.fromkeys(permutations(range(4)), 1 / 24), 24_000)


def test_a_partial_shuffle_chooses_uniformly():
    seen = Counter()
    for step in range(20_000):
        items = np.arange(5, dtype=np.int32)
        shuffle(items, 2, np.uint64(9), 3, step)
        assert sorted(items) == [0, 1, 2, 3, 4]
        seen[tuple(items[:2].tolist())] += 1
    assert_follows(seen, dict.fromkeys(permutations(range(5), 2), 1 / 20), 20_000)


@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_many_at_once_are_a_prefix_of_more(count):
    many = uniform(20, 1000, np.uint64(3), 5, 9)
    np.testing.assert_array_equal(uniform(count, 1000, np.uint64(3), 5, 9), many[:count])
    assert len(set(many.tolist())) > 15
