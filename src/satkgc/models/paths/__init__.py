"""The path model: messages that start at a question's entity and go along the graph's edges."""

from satkgc.models.paths.explain import Path, strongest_paths
from satkgc.models.paths.model import PathConfig, PathModel

__all__ = ["Path", "PathConfig", "PathModel", "strongest_paths"]
