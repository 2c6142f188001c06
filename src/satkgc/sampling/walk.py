"""Random-walk subgraphs (Section 4.1): the walk with restart that collects M distinct triples around a centre."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.kg import Adjacency, KnowledgeGraph
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.hashset import insert, new_set
from satkgc.sampling.philox import START, WALK, below, words
from satkgc.sampling.saam import SubgraphSampler
from satkgc.sampling.sampler import Needs, SamplingVectors

DEGREE_POWERS = {"brwr": -1, "rwr": 0, "brwr_p": 1}  # a neighbour's weight is its degree to this power

# The columns of the table of moves.
THRESHOLD, ALIAS, FIRST, DEGREE, TRIPLE = range(5)
PARALLEL = 0xFFFFFFFF  # instead of a triple: there are several, look them up


class WalkSampler(SubgraphSampler):
    """Subgraphs by random walk with restart: BRWR, RWR or BRWR_P.

    The start is the centre's head or tail, by inverse degree. In each step the walk goes back to the start with
    probability p_r, else to a neighbour: by inverse degree (BRWR), uniformly (RWR) or by degree (BRWR_P). The edge
    walked yields its triple, uniformly one of the parallel ones.

    The walk ends when it has found M distinct triples. Two cases need care:

    - A component of at most M triples. The walk would reach each of them in the end, so the subgraph is the whole
      component, for certain. A walk that has not ended after 2M steps has a breadth-first count, bounded by M, decide
      whether this is such a component, and if so returns it: the same set as an endless walk, with no waiting for the
      last triples and none of the rarely walked ones lost.
    - A larger component whose triples are too hard to reach (a long chain: with p_r = 1/25 the hundredth hop has
      probability 0.017). The walk ends after 100 M steps, at least a million, with what these found. That number is
      fixed beforehand and does not depend on what was found, so nothing is given up for having been unlucky.

    With `walk_steps` the walk takes at most so many steps everywhere, and the subgraph is what these find.
    """

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: SamplingConfig,
        seed: int,
        needs: Needs = Needs(),
        vectors: SamplingVectors | None = None,
    ) -> None:
        super().__init__(kg, config, seed, needs, vectors)
        self.limit = min(config.subgraph_triples, len(kg.train))
        self.steps = config.walk_steps or min(max(1_000_000, 100 * self.limit), 2**32 - 1)  # a counter has 32 bits
        self.exhaust = config.walk_steps == 0  # small components are found whole
        self.restart = np.uint64(config.restart * 2**32)
        self.table = move_table(kg.adjacency, DEGREE_POWERS[config.sampler])

    def subgraph(self, centre: int, step: int) -> Int32:
        """Distinct training triples, in the order in which the walk of this step met them."""
        graph = self.kg.adjacency
        start = start_entity(self.kg.train, graph.neighbour_ptr, centre, self.seed, step)
        triples: Int32 = walk(
            start,
            (graph.neighbour_ptr, graph.neighbours, graph.edge_ptr, graph.edges),
            self.table,
            self.limit,
            self.steps,
            self.exhaust,
            self.restart,
            self.seed,
            step,
        )
        return triples


@njit(cache=True, nogil=True)
def start_entity(triples, ptr, centre, seed, step):  # type: ignore[no-untyped-def]
    """Head or tail of the centre with probability |N(v)|^-1 / (|N(h)|^-1 + |N(t)|^-1) (Section 4.1, i)."""
    h, t = triples[centre, 0], triples[centre, 2]
    of_h, of_t = ptr[h + 1] - ptr[h], ptr[t + 1] - ptr[t]
    a, b, _, _ = words(seed, START, step, 0)
    # |N(h)|^-1 / (|N(h)|^-1 + |N(t)|^-1) = |N(t)| / (|N(h)| + |N(t)|)
    return h if below(a, b, of_h + of_t)[0] < of_t else t


@njit(cache=True, nogil=True, inline="always")  # a call would cost as much as the step
def advance(home, here, table, edge_ptr, edges, restart, seed, step, index):  # type: ignore[no-untyped-def]
    """One step of the walk: the (first slot, degree) of where it leads, and the triple walked, -1 for a restart."""
    a, b, c, d = words(seed, WALK, step, index)
    if a < restart:
        return home, np.int64(-1)
    slot, coin = below(b, c, here[1])
    slot += here[0]
    alias = np.int64(table[slot, ALIAS])  # read whether needed or not: a choice is cheaper than a jump mispredicted
    slot = alias if coin >= table[slot, THRESHOLD] else slot
    triple = np.int64(table[slot, TRIPLE])
    if triple == PARALLEL:
        edge = edge_ptr[slot]
        parallel = np.uint64(edge_ptr[slot + 1] - edge)
        triple = np.int64(edges[edge + np.int64((d * parallel) >> np.uint64(32))])
    return (np.int64(table[slot, FIRST]), np.int64(table[slot, DEGREE])), triple


@njit(cache=True, nogil=True)
def walk(start, graph, table, limit, max_steps, exhaust, restart, seed, step):  # type: ignore[no-untyped-def]
    """The distinct triples of a walk from `start` over the table of moves, at most `limit` (Section 4.1, ii)."""
    ptr, _, edge_ptr, edges = graph
    triples = np.empty(limit, np.int32)
    seen = new_set(limit)
    count = 0
    home = (ptr[start], ptr[start + 1] - ptr[start])
    here = home
    for index in range(max_steps):
        here, triple = advance(home, here, table, edge_ptr, edges, restart, seed, step, index)
        if triple >= 0 and insert(seen, triple):
            triples[count] = triple
            count += 1
            if count == limit:
                break
        if exhaust and index == 2 * limit:
            whole = component(start, graph, limit)
            if len(whole) > 0:
                return whole
    return triples[:count].copy()


@njit(cache=True, nogil=True)
def component(start, graph, limit):  # type: ignore[no-untyped-def]
    """All triples of the component that `start` is in, or none if there are more than `limit`; O(limit)."""
    ptr, neighbours, edge_ptr, edges = graph
    queue = np.empty(limit + 1, np.int32)  # a component of L triples has at most L + 1 entities
    seen = new_set(limit + 1)
    triples = np.empty(limit, np.int32)
    none = np.empty(0, np.int32)
    insert(seen, start)
    queue[0] = start
    entities, count, at = 1, 0, 0
    while at < entities:
        u = queue[at]
        at += 1
        for slot in range(ptr[u], ptr[u + 1]):
            v = neighbours[slot]
            if insert(seen, v):
                if entities == limit + 1:
                    return none
                queue[entities] = v
                entities += 1
            if v >= u:  # each pair is met from both its ends
                for edge in range(edge_ptr[slot], edge_ptr[slot + 1]):
                    if count == limit:
                        return none
                    triples[count] = edges[edge]
                    count += 1
    return triples[:count].copy()


def move_table(adjacency: Adjacency, power: int) -> Any:
    """The graph as a walker sees it: a row for each neighbour slot, drawn with weight |N(v)|^power.  # (D, 5) uint32

    THRESHOLD and ALIAS are an alias table (Walker 1977, built as by Vose 1991) over the slots of each entity: a slot
    drawn uniformly stands unless a 32-bit coin reaches its threshold, and then gives way to its alias. So a draw is
    O(1) at any degree. FIRST and DEGREE are the slots of the neighbour, TRIPLE what joins the two. With all of it in
    one place a step of the walk waits for memory once or twice, not six times. 20 bytes a slot, linear to build.
    """
    # Allocated by numpy, which asks for huge pages: a walk jumps about, and would wait for the page table as well.
    table = np.empty((len(adjacency.neighbours), 5), np.uint32)
    graph = adjacency.neighbour_ptr, adjacency.neighbours, adjacency.edge_ptr, adjacency.edges
    _fill_table(*graph, adjacency.degree, power, table)
    return table


@njit(cache=True, nogil=True)
def _fill_table(ptr, neighbours, edge_ptr, edges, degree, power, table):  # type: ignore[no-untyped-def]
    for slot in range(len(neighbours)):
        v = neighbours[slot]
        table[slot, FIRST] = np.uint32(ptr[v])
        table[slot, DEGREE] = np.uint32(degree[v])
        single = edge_ptr[slot + 1] - edge_ptr[slot] == 1
        table[slot, TRIPLE] = np.uint32(edges[edge_ptr[slot]]) if single else np.uint32(PARALLEL)

    widest = 1
    for u in range(len(ptr) - 1):
        widest = max(widest, ptr[u + 1] - ptr[u])
    share = np.empty(widest)  # the weight of a slot in units of the mean weight
    work = np.empty(widest, np.int64)  # slots below the mean from the left, the others from the right
    for u in range(len(ptr) - 1):
        first, n = ptr[u], ptr[u + 1] - ptr[u]
        total = 0.0
        for j in range(n):
            share[j] = float(degree[neighbours[first + j]]) ** power
            total += share[j]
        small, large = 0, n
        for j in range(n):
            share[j] *= n / total
            table[first + j, THRESHOLD] = np.uint32(0xFFFFFFFF)  # stands as it is unless said otherwise below
            table[first + j, ALIAS] = np.uint32(first + j)
            if share[j] < 1.0:
                work[small] = j
                small += 1
            else:
                large -= 1
                work[large] = j
        while small > 0 and large < n:
            small -= 1
            poor, rich = work[small], work[large]
            table[first + poor, THRESHOLD] = np.uint32(share[poor] * 4294967296.0)
            table[first + poor, ALIAS] = np.uint32(first + rich)
            share[rich] -= 1.0 - share[poor]
            if share[rich] < 1.0:
                large += 1
                work[small] = rich
                small += 1
