"""REST and the web page over completion."""

from satkgc.serving.app import create_app
from satkgc.serving.run import serve
from satkgc.serving.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app", "serve"]
