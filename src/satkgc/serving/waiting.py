"""Wait for answers as long as somebody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import HTTPException, Request

T = TypeVar("T")
GONE = 499  # nobody reads it; it is counted in /metrics


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives. It is cancelled when the client goes away meanwhile, and with it what has not begun."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(GONE, "the client went away")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
