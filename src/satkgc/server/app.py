"""The application: API, page, health and metrics, behind one gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from satkgc import __version__
from satkgc.completion.answer import AmbiguousNameError, UnknownNameError
from satkgc.errors import SatkgcError
from satkgc.server.api import routes
from satkgc.server.batching import Busy
from satkgc.server.gate import Gate
from satkgc.server.schemas import Health
from satkgc.server.service import NotReady, Service
from satkgc.server.settings import Settings

if TYPE_CHECKING:
    from satkgc.completion import Completer

STATIC = Path(__file__).parent / "static"


def create_app(
    load: Callable[[], Completer], settings: Settings | None = None, failed: Callable[[], None] = lambda: None
) -> FastAPI:
    """An application over what `load` gives; it is called in the background once the application starts."""
    settings = settings or Settings()
    service = Service(load, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start(failed)
        yield
        await run_in_threadpool(service.stop)

    app = FastAPI(
        title="satkgc",
        version=__version__,
        description="Complete a knowledge graph with a trained model.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both pages load scripts from elsewhere, which this service never does
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(routes(service))
    _health_and_metrics(app, service)
    _errors(app)
    _page(app)
    app.add_middleware(Gate, settings=settings, metrics=service.metrics)
    return app


def _page(app: FastAPI) -> None:
    # Under a prefix: at the root it would take the API's unknown paths and wrong methods for files.
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")


def _health_and_metrics(app: FastAPI, service: Service) -> None:
    @app.get("/health", responses={503: {"model": Health, "description": "Not ready"}})
    async def health(response: Response) -> Health:
        """200 when questions can be answered, 503 while the model loads or when it could not be loaded."""
        response.status_code = 200 if service.status == "ready" else 503
        return Health.model_validate({"status": service.status})

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counts and times in the Prometheus text form."""
        return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _errors(app: FastAPI) -> None:
    def problem(status: int, error: object, **more: Any) -> JSONResponse:
        return JSONResponse({"error": " ".join(str(error).split()), **more}, status)

    @app.exception_handler(SatkgcError)
    async def bad_question(request: Request, error: SatkgcError) -> JSONResponse:
        if isinstance(error, UnknownNameError):
            return problem(404, error, suggestions=jsonable_encoder(error.suggestions))
        if isinstance(error, AmbiguousNameError):
            return problem(409, error, suggestions=jsonable_encoder(error.candidates))
        return problem(422, error)

    @app.exception_handler(RequestValidationError)
    async def bad_body(request: Request, error: RequestValidationError) -> JSONResponse:
        # Where an id or an object may stand, each is told why it is not the other: what lies deepest is what was meant.
        first = max(error.errors(), key=lambda one: len(one["loc"]))
        if first["type"] == "json_invalid":
            return problem(400, f"the body is no JSON, from its character {first['loc'][-1]} on")
        where = ".".join(str(part) for part in first["loc"][1:]) or "body"
        if where == "body" and not request.headers.get("content-type", "").startswith("application/json"):
            return problem(422, "the body is not read as JSON: send it with the header Content-Type: application/json")
        return problem(422, f"{where}: {first['msg'].removeprefix('Value error, ')}")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        response = problem(error.status_code, error.detail)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(NotReady)
    async def not_ready(request: Request, error: NotReady) -> JSONResponse:
        return problem(503, error)

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> JSONResponse:
        response = problem(503, "too many questions are waiting; try again in a moment")
        response.headers["Retry-After"] = "1"
        return response

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        return problem(500, "internal error")
