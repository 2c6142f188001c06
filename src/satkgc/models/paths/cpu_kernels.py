"""The compiled loops of `cpu_layers`: a layer, forward and backward, for one block of questions.

A node's features of a block lie together, those of one feature side by side for all questions, (D, b). So what a node
received, mean, deviation, maximum, minimum and its own state, is a matrix (5D, b), and every loop is long.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EPS = np.float32(1e-6)  # least variance of messages, as in aggregate.py
LEAST = np.float32(EPS**0.5 * (1 + 2**-7))  # a deviation up to this one is that of the least variance
START, ZERO = np.int32(-1), np.int32(-2)  # where another has the place of its largest message: the start, or any zero

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@compiled
def forward(  # type: ignore[no-untyped-def]
    states, weights, queries, matrices, bias, gain, shift, norm_eps, first,
    source, relation, ptr, keep, count, scale, order, edge_weights, heads, out, changes, block, begin, stop,
):  # fmt: skip
    """Rows `begin` to `stop` of the order, in which nodes with as many edges are neighbours."""
    dim, size = len(bias), heads.shape[1]
    own = slice(block * dim * size, (block + 1) * dim * size)
    active = _active(heads[block], len(states), first)
    x, y = np.empty((5, dim * size), np.float32), np.empty((dim, size), np.float32)
    places, normal, rate = (
        np.empty((2, dim * size), np.int32),
        np.empty((dim, size), np.float32),
        np.empty(size, np.float32),
    )
    matrix, idle = np.empty((dim, 5 * dim), np.float32), np.zeros((dim, size), np.float32)
    for i in range(begin, stop):
        node = order[i]
        if i == begin or count[node] != count[order[i - 1]]:
            _matrix(matrices, scale[node], matrix)
            if first:
                _idle(matrix, idle)
                _normalise(idle, bias, norm_eps, normal, rate)
                _rectify(normal, gain, shift, np.zeros_like(idle).ravel(), idle.ravel())
        if first and not _reached(node, source, ptr, keep, active):
            out[node, own] = idle.ravel()
            continue
        _receive(
            node, own, states, weights, queries[block], heads[block], source, relation, ptr, keep, count, edge_weights,
            active, x, places[0], places[1],
        )  # fmt: skip
        np.dot(matrix, x.reshape(5 * dim, size), y)
        if len(changes):
            changes[node, own] = y.ravel()
        _normalise(y, bias, norm_eps, normal, rate)
        _rectify(normal, gain, shift, states[node, own], out[node, own])


@compiled
def backward(  # type: ignore[no-untyped-def]
    states, weights, queries, matrices, bias, gain, shift, norm_eps, first,
    source, relation, ptr, keep, count, scale, order, edge_weights, heads, changes, gradient,
    of_states, of_weights, of_queries, of_matrices, of_vectors, of_edges, block,
):  # fmt: skip
    """Adds to the gradients of a block; of matrices, of bias, gain and shift and of edges each block has its own."""
    dim, size = len(bias), heads.shape[1]
    own = slice(block * dim * size, (block + 1) * dim * size)
    active = _active(heads[block], len(states), first)
    x, of_x = np.empty((5, dim * size), np.float32), np.empty((5 * dim, size), np.float32)
    places, slopes, pull = (
        np.empty((2, dim * size), np.int32),
        np.empty((2, dim * size), np.float32),
        np.empty(dim * size, np.float32),
    )
    normal, rate, of_y = (
        np.empty((dim, size), np.float32),
        np.empty(size, np.float32),
        np.empty((dim, size), np.float32),
    )
    matrix, transposed = np.empty((dim, 5 * dim), np.float32), np.empty((5 * dim, dim), np.float32)
    of_matrix, part, idle = (
        np.empty((dim, 5 * dim), np.float32),
        np.empty((dim, 5 * dim), np.float32),
        np.empty((dim, size), np.float32),
    )
    for i in range(len(order)):
        node = order[i]
        if i == 0 or count[node] != count[order[i - 1]]:
            _matrix(matrices, scale[node], matrix)
            transposed[:] = matrix.T
            of_matrix[:] = 0
            if first:
                _idle(matrix, idle)
        of_state = gradient[node, own]
        if first and not _reached(node, source, ptr, keep, active):
            _through_norm(idle, of_state, bias, gain, shift, norm_eps, normal, rate, of_vectors[block], of_y)
            for j in range(dim):
                of_matrix[j, dim : 2 * dim] += np.sqrt(EPS) * of_y[j].sum()
        else:
            change = changes[node, own].reshape(dim, size)
            _receive(
                node, own, states, weights, queries[block], heads[block], source, relation, ptr, keep, count,
                edge_weights, active, x, places[0], places[1],
            )  # fmt: skip
            _through_norm(change, of_state, bias, gain, shift, norm_eps, normal, rate, of_vectors[block], of_y)
            np.dot(of_y, x.reshape(5 * dim, size).T, part)
            of_matrix += part
            np.dot(transposed, of_y, of_x)
            statistics = of_x.reshape(5, dim * size)
            _slopes(x, statistics, count[node], slopes)
            _add_both(statistics[4], of_state, of_states[node, own])
            _add_start(node, heads[block], queries[block], slopes, statistics, places, of_queries[block])
            for edge in range(ptr[node], ptr[node + 1]):
                u, r = source[edge], relation[edge]
                if not keep[edge] or not active[u]:
                    continue
                factor = edge_weights[edge] if len(edge_weights) else np.float32(1)
                state, weight, place = states[u, own], weights[r, own], np.int32(edge - ptr[node])
                _pull(factor, place, state, weight, slopes, statistics, places[0], places[1], pull)
                _add_products(factor, pull, state, weight, of_states[u, own], of_weights[r, own])
                if of_edges.shape[1]:
                    of_edges[block, edge] = _product(pull, state, weight)
        if i + 1 == len(order) or count[node] != count[order[i + 1]]:
            _add_matrices(of_matrix, scale[node], of_matrices[block])


@compiled
def _active(heads, nodes, first):  # type: ignore[no-untyped-def]
    """Nodes whose state may be other than zero."""
    active = np.full(nodes, not first)
    for head in heads:
        if head >= 0:
            active[head] = True
    return active


@compiled
def _reached(node, source, ptr, keep, active):  # type: ignore[no-untyped-def]
    """Whether anything but zeros arrives at a node."""
    if active[node]:
        return True
    reached = False
    for edge in range(ptr[node], ptr[node + 1]):
        reached |= keep[edge] and active[source[edge]]
    return reached


@compiled
def _matrix(matrices, scale, out):  # type: ignore[no-untyped-def]
    """Of nodes with that log-degree."""
    inverse = np.float32(1) / max(scale, np.float32(0.01))
    for j in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[j, k] = matrices[0, j, k] + scale * matrices[1, j, k] + inverse * matrices[2, j, k]


@compiled
def _add_matrices(of_matrix, scale, of_matrices):  # type: ignore[no-untyped-def]
    inverse = np.float32(1) / max(scale, np.float32(0.01))
    for j in range(of_matrix.shape[0]):
        for k in range(of_matrix.shape[1]):
            of_matrices[0, j, k] += of_matrix[j, k]
            of_matrices[1, j, k] += scale * of_matrix[j, k]
            of_matrices[2, j, k] += inverse * of_matrix[j, k]


@compiled
def _idle(matrix, out):  # type: ignore[no-untyped-def]
    """What follows from zeros alone: their deviation is the least there is."""
    dim = len(out)
    for j in range(dim):
        out[j] = np.sqrt(EPS) * matrix[j, dim : 2 * dim].sum()


@compiled
def _receive(  # type: ignore[no-untyped-def]
    node, own, states, weights, queries, heads, source, relation, ptr, keep, count, edge_weights, active,
    x, at_top, at_bottom,
):  # fmt: skip
    """Mean, deviation, maximum and minimum of what arrives at a node, and its state; the places of the extremes."""
    total, squares, largest, smallest = x[0], x[1], x[2], x[3]
    for part in range(4):
        x[part] = 0
    at_top[:] = START
    at_bottom[:] = START
    for b in range(len(heads)):
        if heads[b] == node:
            for f in range(b, len(total), len(heads)):
                start = queries[f]
                total[f], squares[f], largest[f], smallest[f] = start, start * start, start, start
    zeros = False
    for edge in range(ptr[node], ptr[node + 1]):
        if not keep[edge]:
            continue
        if not active[source[edge]]:
            zeros = True
            continue
        factor, place = edge_weights[edge] if len(edge_weights) else np.float32(1), np.int32(edge - ptr[node])
        state, weight = states[source[edge], own], weights[relation[edge], own]
        _add_message(factor, place, state, weight, total, squares, largest, smallest, at_top, at_bottom)
    if zeros:
        x[4] = 0
        _add_message(np.float32(0), ZERO, x[4], x[4], total, squares, largest, smallest, at_top, at_bottom)
    _moments(np.float32(1) / count[node], total, squares)
    x[4] = states[node, own]


@compiled
def _add_message(factor, place, state, weight, total, squares, largest, smallest, at_top, at_bottom):  # type: ignore[no-untyped-def]
    for f in range(len(total)):
        message = factor * state[f] * weight[f]
        total[f] += message
        squares[f] += message * message
        larger, smaller = message > largest[f], message < smallest[f]
        at_top[f] = place if larger else at_top[f]
        at_bottom[f] = place if smaller else at_bottom[f]
        largest[f] = message if larger else largest[f]
        smallest[f] = message if smaller else smallest[f]


@compiled
def _moments(share, total, squares):  # type: ignore[no-untyped-def]
    """Sums become mean and deviation."""
    for f in range(len(total)):
        mean = total[f] * share
        variance = squares[f] * share - mean * mean
        total[f] = mean
        squares[f] = np.sqrt(variance if variance > EPS else EPS)


@compiled
def _normalise(change, bias, eps, normal, rate):  # type: ignore[no-untyped-def]
    """Change and bias, of mean zero and variance one for every question; what they were multiplied by."""
    dim, size = change.shape
    mean = np.zeros(size, np.float32)
    for j in range(dim):
        for b in range(size):
            normal[j, b] = change[j, b] + bias[j]
            mean[b] += normal[j, b]
    rate[:] = 0
    for j in range(dim):
        for b in range(size):
            normal[j, b] -= mean[b] / np.float32(dim)
            rate[b] += normal[j, b] * normal[j, b]
    for b in range(size):
        rate[b] = np.float32(1) / np.sqrt(rate[b] / np.float32(dim) + eps)
    for j in range(dim):
        for b in range(size):
            normal[j, b] *= rate[b]


@compiled
def _rectify(normal, gain, shift, state, out):  # type: ignore[no-untyped-def]
    dim, size = normal.shape
    before, after = state.reshape(dim, size), out.reshape(dim, size)
    for j in range(dim):
        for b in range(size):
            value = normal[j, b] * gain[j] + shift[j]
            after[j, b] = before[j, b] + (value if value > 0 else np.float32(0))


@compiled
def _through_norm(change, of_state, bias, gain, shift, eps, normal, rate, of_vectors, of_change):  # type: ignore[no-untyped-def]
    """The gradient of a change, from that of the state; those of bias, gain and shift are added up."""
    dim, size = change.shape
    gradient = of_state.reshape(dim, size)
    _normalise(change, bias, eps, normal, rate)
    total, along = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for j in range(dim):
        of_gain, of_shift = np.float32(0), np.float32(0)
        for b in range(size):
            g = gradient[j, b] if normal[j, b] * gain[j] + shift[j] > 0 else np.float32(0)
            of_gain += g * normal[j, b]
            of_shift += g
            g *= gain[j]
            total[b] += g
            along[b] += g * normal[j, b]
            of_change[j, b] = g
        of_vectors[1, j] += of_gain
        of_vectors[2, j] += of_shift
    for b in range(size):
        total[b] /= np.float32(dim)
        along[b] /= np.float32(dim)
    for j in range(dim):
        of_bias = np.float32(0)
        for b in range(size):
            of_change[j, b] = rate[b] * (of_change[j, b] - total[b] - normal[j, b] * along[b])
            of_bias += of_change[j, b]
        of_vectors[0, j] += of_bias


@compiled
def _slopes(x, of_x, count, slopes):  # type: ignore[no-untyped-def]
    """∂/∂message of a node's mean and deviation: constant + slope · message."""
    mean, deviation, of_mean, of_deviation = x[0], x[1], of_x[0], of_x[1]
    constant, slope = slopes[0], slopes[1]
    for f in range(len(mean)):
        steep = of_deviation[f] / (deviation[f] * count) if deviation[f] > LEAST else np.float32(0)
        constant[f] = of_mean[f] / count - steep * mean[f]
        slope[f] = steep


@compiled
def _add_start(node, heads, queries, slopes, of_x, places, of_queries):  # type: ignore[no-untyped-def]
    """The start is a message too."""
    for b in range(len(heads)):
        if heads[b] == node:
            for f in range(b, len(queries), len(heads)):
                of_queries[f] += slopes[0, f] + slopes[1, f] * queries[f]
                of_queries[f] += of_x[2, f] if places[0, f] == START else np.float32(0)
                of_queries[f] += of_x[3, f] if places[1, f] == START else np.float32(0)


@compiled
def _pull(factor, place, state, weight, slopes, of_x, at_top, at_bottom, pull):  # type: ignore[no-untyped-def]
    """The gradient of a message."""
    constant, slope, of_largest, of_smallest = slopes[0], slopes[1], of_x[2], of_x[3]
    for f in range(len(pull)):
        of_message = constant[f] + slope[f] * factor * state[f] * weight[f]
        of_message += of_largest[f] if at_top[f] == place else np.float32(0)
        of_message += of_smallest[f] if at_bottom[f] == place else np.float32(0)
        pull[f] = of_message


@compiled
def _add_products(factor, pull, state, weight, of_state, of_weight):  # type: ignore[no-untyped-def]
    for f in range(len(pull)):
        of_state[f] += factor * pull[f] * weight[f]
        of_weight[f] += factor * pull[f] * state[f]


@compiled
def _add_both(a, b, out):  # type: ignore[no-untyped-def]
    for f in range(len(out)):
        out[f] += a[f] + b[f]


@compiled
def _product(a, b, c):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for f in range(len(a)):
        total += a[f] * b[f] * c[f]
    return total
