"""The path model: messages that start at a question's entity and go along the graph's edges."""

from satkgc.models.paths.model import PathConfig, PathModel

__all__ = ["PathConfig", "PathModel"]
