"""The application: API, page, health, metrics and error messages, behind one gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from satkgc.completion import AmbiguousNameError, UnknownNameError, UnknownTypeError
from satkgc.errors import SatkgcError
from satkgc.serving.api import routes
from satkgc.serving.gate import Gate
from satkgc.serving.messages import field_path, invalid_value
from satkgc.serving.schemas import Health, one_line, problems, suggestions
from satkgc.serving.service import Busy, NotReady, Service
from satkgc.serving.settings import ServiceSettings
from satkgc.version import __version__

if TYPE_CHECKING:
    from satkgc.completion import Completer

STATIC = Path(__file__).parent / "static"
PAGES = {  # their files, titles and scripts; all begin with head.html
    "/": ("index", "Ask the graph", "app"),
    "/review": ("review", "Review", "review"),
    "/entity": ("entity", "Entity", "entity"),
    "/docs": ("docs", "API", "docs"),
}
_UNREADABLE = [
    (UnicodeDecodeError, "it is not UTF-8; send it in that encoding"),
    (RecursionError, "it is nested too deeply; send an object of the schema"),
    (ValueError, "it has a number of too many digits; send a shorter one"),
]


def create_app(
    load: Callable[[], Completer],
    settings: ServiceSettings | None = None,
    version: Callable[[], object] = lambda: None,
) -> FastAPI:
    """An application over the completer that `load` opens, in the background, once the application has started, and
    again when `version` has changed."""
    settings = settings or ServiceSettings()
    service = Service(load, settings, version)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await run_in_threadpool(service.stop)

    app = FastAPI(
        title="satkgc",
        version=__version__,
        description="Complete a knowledge graph with a trained model.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both pages load scripts from other hosts, which this service never does; it has its own
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,  # a proxy's prefix would be lost
    )
    app.state.service = service
    app.include_router(routes(service))
    _health_and_metrics(app, service)
    _errors(app)
    _page(app)
    app.add_middleware(Gate, settings=settings, metrics=service.metrics)
    return app


def _page(app: FastAPI) -> None:
    # Under a prefix: at the root, unknown paths and wrong methods of the API would be files that are missing.
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    head = Template((STATIC / "head.html").read_text("utf-8"))
    for path, (name, title, script) in PAGES.items():
        html = head.substitute(title=title, script=script) + (STATIC / f"{name}.html").read_text("utf-8")
        app.add_api_route(path, _sender(html), methods=["GET", "HEAD"], include_in_schema=False)


def _sender(html: str) -> Callable[[], Awaitable[HTMLResponse]]:
    async def page() -> HTMLResponse:
        return HTMLResponse(html)

    return page


def _health_and_metrics(app: FastAPI, service: Service) -> None:
    responses = problems(service.settings)
    without_token = {status: response for status, response in responses.items() if status != 401}

    @app.head("/health", include_in_schema=False)
    @app.get(
        "/health",
        response_model_exclude_none=True,
        responses={**without_token, 503: {"model": Health, "description": "Not ready"}},
    )
    async def health(response: Response) -> Health:
        """200 when questions can be answered, 503 while the model loads or when it could not be loaded."""
        response.status_code = 200 if service.status == "ready" else 503
        progress = service.progress if service.status == "loading" else None
        return Health.model_validate({"status": service.status, "doing": progress})

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **responses},
        dependencies=[Depends(HTTPBearer(auto_error=False))] if service.settings.token else [],
    )
    async def metrics() -> Response:
        """Counts and times in Prometheus text format."""
        return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _errors(app: FastAPI) -> None:
    def problem(status: int, error: object, **more: Any) -> JSONResponse:
        return JSONResponse({"error": one_line(error), **more}, status)

    @app.exception_handler(SatkgcError)
    async def bad_question(request: Request, error: SatkgcError) -> JSONResponse:
        status = {UnknownNameError: 404, UnknownTypeError: 404, AmbiguousNameError: 409}.get(type(error))
        if status is None:
            return problem(422, error)
        return problem(status, error, suggestions=jsonable_encoder(suggestions(error)))

    @app.exception_handler(RequestValidationError)
    async def bad_body(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return problem(400, f"the body is not JSON: see its character {first['loc'][-1]}")
        where = field_path(first["loc"][1:])
        if not where and first["type"] == "missing":
            return problem(422, "there is no body; send a JSON object, such as the examples in /api/v1/openapi.json")
        if not where and not request.headers.get("content-type", "").startswith("application/json"):
            return problem(422, "the body is not read as JSON: send it with the header Content-Type: application/json")
        return problem(422, invalid_value(where or "body", first))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        cause = error.__cause__ if error.status_code == 400 else None  # FastAPI has one message for all of them
        reason = next((text for kind, text in _UNREADABLE if isinstance(cause, kind)), None)
        response = problem(error.status_code, f"the body cannot be read: {reason}" if reason else error.detail)
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
