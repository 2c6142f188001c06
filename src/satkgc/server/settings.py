"""What the service may be told, and the limits that hold for every request."""

from __future__ import annotations

from dataclasses import dataclass, replace

MAX_BODY = 1 << 20  # bytes of a request's body
MAX_K = 100  # answers to one question
MAX_QUESTIONS = 256  # questions in one batch
MAX_ID = 2_000  # characters of an id: URLs are long
MAX_NAME = 300  # characters of a name or of a search
MAX_DESCRIPTION = 5_000  # characters of a new entity's description; the model reads the first tokens only
MAX_FACTS = 200  # that are known of a new entity; the model reads the first tokens of them
MAX_AMONG = 1_000  # entities in a filter
MAX_NEIGHBOURS = 200  # neighbours in one entity's detail
MAX_WAITING = 4_096  # questions in the queue before the service says that it is busy


@dataclass(frozen=True)
class Settings:
    """How one service behaves."""

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = None  # asked of every request to the API when set
    batch_size: int = 32  # questions answered by one pass of the model; 1 is no micro-batching
    batch_wait: float = 0.002  # seconds that a question waits for company

    def without_batching(self) -> Settings:
        """The same, each question answered by itself."""
        return replace(self, batch_size=1, batch_wait=0.0)
