"""REST, the web page and tools for language models over completion."""

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.serving.app import create_app
from satkgc.serving.run import serve
from satkgc.serving.settings import ServiceSettings
from satkgc.serving.tools import TOOLS, Tool, call_tool

if TYPE_CHECKING:
    from satkgc.serving.mcp_server import serve_http, serve_stdio

__all__ = ["TOOLS", "ServiceSettings", "Tool", "call_tool", "create_app", "serve", "serve_http", "serve_stdio"]


def __getattr__(name: str) -> Any:
    if name not in ("serve_http", "serve_stdio"):  # they need an SDK that the rest does without
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.mcp_server"), name)
