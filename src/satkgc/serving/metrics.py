"""Counters of the service, in Prometheus text format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class ServiceMetrics:
    """Counters of one application, in a registry of its own, so that two in a process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "satkgc_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "satkgc_request_seconds", "Time to answer a request", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self.questions = Counter("satkgc_questions", "Completion questions", ["asked"], registry=self.registry)
        self.batches = Histogram(
            "satkgc_batch_size", "Questions answered by one pass", buckets=_SIZES, registry=self.registry
        )
        self.waiting = Gauge("satkgc_waiting_questions", "Questions in the queue", registry=self.registry)
        self.ready = Gauge("satkgc_ready", "1 when the model is loaded", registry=self.registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; unknown methods share a label, so that no client can grow the page."""
        method = method if method in _METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def page(self) -> bytes:
        """All of it as text."""
        return generate_latest(self.registry)
