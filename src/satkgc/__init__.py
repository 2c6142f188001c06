"""Complete knowledge graphs with fine-tuned language models (SATKGC, WWW'25)."""

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph

__version__ = "0.1.0"
__all__ = ["KnowledgeGraph", "SatkgcError", "__version__"]
