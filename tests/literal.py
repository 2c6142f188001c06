"""The paper's formulas written out one sample at a time in Python floats: slow, and easy to read against the paper."""

from __future__ import annotations

import math


def cosine(a, b):
    """Eq. 2."""
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def loss(config, samples, queries, tails, known, degree, hops, tau, beta, count):
    """L_B of the samples (head, directed relation, tail), one vector each.

    `hops[e]` are those from h_c to e, -1 without a path.

    `count[e]` is how often e answers in training: logit adjustment divides by its power.
    """
    size = len(samples)

    def omega(i, j):
        """The paper: the reciprocal of the product of the two hops. The authors' program: two tails, each two more."""
        if config.proximity == "paper":
            first, second = hops[samples[i][0]], hops[samples[j][2]]
            return 0 if -1 in (first, second) else 1 / (max(first, 1) * max(second, 1))
        first, second = hops[samples[i][2]], hops[samples[j][2]]
        return 0 if i == j or -1 in (first, second) else 1 / ((first + 2) * (second + 2))

    def phi(i, j):
        """Eq. 4, with the margin of Eq. 3."""
        value = cosine(queries[i], tails[j])
        if config.proximity != "off":
            value += beta * omega(i, j)
        return value - (config.margin if i == j else 0)

    def is_false_negative(i, entity):
        head, relation, tail = samples[i]
        return (head, relation, entity) in known or entity == tail

    def share(value, entity):
        """What an entity brings to the softmax over tails."""
        return math.exp(value / tau) / count[entity] ** config.logit_adjustment

    def forward(i):
        """Eq. 3: (h, r) → t."""
        head, _, tail = samples[i]
        positive = share(phi(i, i), tail)
        columns = [(j, samples[j][2]) for j in range(size) if j != i]
        others = [share(phi(i, j), other) for j, other in columns if not is_false_negative(i, other)]
        if config.self_negatives and not is_false_negative(i, head):
            (own_head,) = (tails[j] for j in range(size) if j % (size // 2) == i % (size // 2) and j != i)
            others.append(share(cosine(queries[i], own_head), head))
        return -math.log(positive / (positive + sum(others)))

    def backward(j):
        """Eq. 3 the other way: t → (h, r)."""
        positive = math.exp(phi(j, j) / tau)
        others = [math.exp(phi(i, j) / tau) for i in range(size) if i != j and not is_false_negative(i, samples[j][2])]
        return -math.log(positive / (positive + sum(others)))

    def psi(entity):
        return math.log(degree[entity] + 1) if config.frequency else 1

    def mean(losses, weights):
        """Eq. 5, over the number of samples."""
        return sum(w * x for w, x in zip(weights, losses, strict=True)) / size

    result = mean([forward(i) for i in range(size)], [psi(tail) for _, _, tail in samples])
    if config.two_sided:
        result += mean([backward(j) for j in range(size)], [psi(head) for head, _, _ in samples])
    return result
