"""The paper's formulas written out one sample at a time in Python floats: slow, and easy to read against the paper."""

from __future__ import annotations

import math


def cosine(a, b):
    """Eq. 2."""
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def loss(config, samples, queries, tails, known, degree, distance, tau, beta, count):
    """L_B of the samples (head, directed relation, tail), one vector each; `distance[e]` is the hops from h_c to e.

    `count[e]` is how often e answers in training: popularity divides by its power.
    """
    size = len(samples)

    def omega(i, j):
        """The reciprocal of the product of the two hops."""
        return 1 / (distance[samples[i][0]] * distance[samples[j][2]])

    def phi(i, j):
        """Eq. 4, with the margin of Eq. 3."""
        value = cosine(queries[i], tails[j])
        if config.proximity == "all" or (config.proximity == "negatives" and i != j):
            value += beta * omega(i, j)
        return value - (config.margin if i == j else 0)

    def is_false_negative(i, entity):
        head, relation, tail = samples[i]
        if config.mask == "known":
            return (head, relation, entity) in known or entity == tail
        return config.mask == "answer" and entity == tail

    def share(value, entity):
        """What an entity brings to the softmax over tails."""
        return math.exp(value / tau) / count[entity] ** config.popularity

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

    def reduced(losses, weights):
        """Eq. 5, or one of its means."""
        total = sum(w * x for w, x in zip(weights, losses, strict=True))
        return total / {"sum": 1, "mean": size, "weighted-mean": sum(weights)}[config.reduction]

    result = reduced([forward(i) for i in range(size)], [psi(tail) for _, _, tail in samples])
    if config.two_sided:
        result += reduced([backward(j) for j in range(size)], [psi(head) for head, _, _ in samples])
    return result
