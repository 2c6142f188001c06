"""Trains in child processes that a test may kill: imports once, forks for every job that it reads from stdin.

A job is a line of JSON with the arguments of `train_or_stop`. The answer is the child's pid, then, when it has ended,
the status that `os.waitpid` gave. With `world`, so many children are the processes of one run.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback

from satkgc.errors import SatkgcError
from satkgc.training import EXIT_CODES, train_or_stop

for name in ("matplotlib.backends.backend_agg", "matplotlib.figure", "transformers.models.bert.modeling_bert"):
    importlib.import_module(name)  # what every child would import for itself


def work(job: dict, rank: int, world: int) -> None:
    """Be a child."""
    out = os.open(job.pop("output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if world > 1:  # what torchrun sets
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job.pop("port"))}
    code = 1
    try:
        stopped = train_or_stop(**job)[1]
        code = {**EXIT_CODES, None: 0}.get(stopped, 3)
    except SatkgcError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


for line in sys.stdin:
    job = json.loads(line)
    world = job.pop("world", 1)
    children = []
    for rank in range(world):
        children.append(os.fork())
        if children[-1] == 0:
            work(job, rank, world)
    print(children[0], flush=True)
    print(max(os.waitpid(child, 0)[1] for child in children), flush=True)
