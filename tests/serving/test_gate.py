"""Hostile input is refused with one line, and nothing it says reaches a file, a script or the log of errors."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import CLIENT, running

from satkgc.errors import SatkgcError
from satkgc.serving.app import create_app
from satkgc.serving.settings import MAX_BODY, MAX_DESCRIPTION, MAX_K, MAX_QUESTIONS, ServiceSettings

ASK = {"head": "dog", "relation": "hypernym"}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("complete", {"head": "dog"}),
        ("complete", {**ASK, "tail": "cat"}),
        ("complete", {**ASK, "k": 0}),
        ("complete", {**ASK, "k": MAX_K + 1}),
        ("complete", {**ASK, "k": "5"}),
        ("complete", {**ASK, "k": True}),
        ("complete", {**ASK, "k": 1e400}),
        ("complete", {**ASK, "head": ""}),
        ("complete", {**ASK, "head": "x" * 2001}),
        ("complete", {**ASK, "head": ["dog"]}),
        ("complete", {**ASK, "head": {"name": " "}}),
        ("complete", {**ASK, "head": {"name": "x", "description": "y" * (MAX_DESCRIPTION + 1)}}),
        ("complete", {**ASK, "head": {"name": "x" * 301}}),
        ("complete", {**ASK, "head": {"name": "x", "facts": [{"relation": "r", "side": "head", "other": "o"}] * 201}}),
        ("complete", {**ASK, "among": ["dog"] * 1001}),
        ("complete", {**ASK, "min_probability": float("nan")}),
        ("complete", {**ASK, "unheard_of": 1}),
        ("complete", {"head": "dog", "tail": "cat", "role": {"relation": "hypernym", "side": "head"}}),
        ("batch", {"questions": []}),
        ("batch", {"questions": [ASK] * (MAX_QUESTIONS + 1)}),
        ("batch", {"questions": [{"head": "dog"}]}),
        ("evidence", ASK),
        ("evidence", {**ASK, "tail": "cat", "k": 51}),
    ],
)
def test_a_body_that_does_not_fit_is_told_so_in_one_line(url: str, path: str, body: dict) -> None:
    assert CLIENT.post(f"{url}/api/v1/complete", content=json.dumps(ASK), headers=JSON).status_code == 200
    answer = CLIENT.post(f"{url}/api/v1/{path}", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[" * 100_000,
        b'{"k": ' + b"9" * 9_000 + b"}",
        b'"\\ud800"',
        b"\xff\xfe",
        b'{"head": "\\ud800", "relation": "hypernym"}',
    ],
)
def test_what_is_no_json_is_refused(url: str, content: bytes) -> None:
    for type in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        answer = CLIENT.post(f"{url}/api/v1/complete", content=content, headers={"content-type": type})
        assert answer.status_code in (400, 422)
        assert list(answer.json()) == ["error"]


def test_a_large_body_is_refused_whatever_it_says_of_its_length(url: str) -> None:
    large = b" " * (MAX_BODY + 1)
    assert CLIENT.post(f"{url}/api/v1/complete", content=large, headers=JSON).status_code == 413
    chunks = (b" " * 65_536 for _ in range(40))  # sent in chunks: no length is given
    assert CLIENT.post(f"{url}/api/v1/complete", content=chunks, headers=JSON).status_code == 413
    exact = json.dumps(ASK).encode().ljust(MAX_BODY)
    assert CLIENT.post(f"{url}/api/v1/complete", content=exact, headers=JSON).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../../../etc/passwd",
        "/static/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/static//etc/passwd",
        "/static/%00",
        "/api/v1/entity?id=/etc/passwd",
        "/api/v1/entities/../../etc/passwd",
    ],
)
def test_a_path_reads_no_file(url: str, path: str) -> None:
    # By hand, since clients tidy paths up before they send them.
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), 10) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"root:" not in answer


def test_an_id_that_is_a_path_is_an_id(url: str) -> None:
    detail = CLIENT.get(f"{url}/api/v1/entity", params={"id": "../../etc/passwd"}).json()
    assert detail["description"] == "its id is a path"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=300))
def test_no_text_makes_the_service_fail(url: str, text: str) -> None:
    for path, parameters in (("entities", {"q": text}), ("entity", {"id": text})):
        answer = CLIENT.get(f"{url}/api/v1/{path}", params=parameters)
        assert answer.status_code < 500
    body = {"head": {"name": text, "description": text}, "relation": "hypernym"}
    answer = CLIENT.post(f"{url}/api/v1/complete", json=body)
    assert answer.status_code == (200 if text.strip() else 422)


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("complete", b'{"head": 5, "relation": "hypernym"}', "head: give an id or a name as text, or {"),
        ("complete", b'{"head": {"name": " "}, "relation": "hypernym"}', "head.name: it is blank; give a name"),
        ("complete", b'{"head": {"names": "x"}, "relation": "hypernym"}', "head.name: it is missing; add it"),
        ("complete", b'{"head": "", "relation": "hypernym"}', "head: it is empty; give at least one character"),
        ("complete", b'{"head": "dog", "relation": 5}', "relation: give it as text"),
        ("complete", b'{"head": "dog", "relation": "r", "K": 5}', "K: there is no such field; remove it"),
        ("batch", b'{"questions": [{"head": 5, "relation": "x"}]}', "questions.0.head: give an id or a name as text"),
        ("batch", b'{"questions": ["dog"]}', "questions.0: give an object"),
        ("complete", b'["dog"]', "body: give an object"),
        ("complete", b"", "there is no body; send a JSON object"),
        ("complete", b"null", ("body: give an object", "there is no body")),  # which of the two is FastAPI's choice
        ("complete", b'{"head": "\xff"}', "the body cannot be read: it is not UTF-8; send it"),
        ("complete", b"[" * 100_000, "the body cannot be read: it is nested too deeply; send"),
        ("complete", b'{"k": ' + b"9" * 6_000 + b"}", "the body cannot be read: it has a number of too many digits"),
    ],
)
def test_an_error_is_worded_for_people(url: str, path: str, body: bytes, error: str) -> None:
    answer = CLIENT.post(f"{url}/api/v1/{path}", content=body, headers=JSON)
    assert answer.json()["error"].startswith(error)
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize("path", ["entity?id=dog&limits=3", "entities?q=dog&offset=1", "relations?limit=1", "info?x"])
def test_a_parameter_that_a_path_does_not_have_is_refused(url: str, path: str) -> None:
    answer = CLIENT.get(f"{url}/api/v1/{path}")
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("unknown parameter '")


def test_a_path_with_a_slash_behind_it_is_no_other_path(url: str) -> None:
    assert CLIENT.get(f"{url}/api/v1/relations/").status_code == 404  # no redirect, which forgets a proxy's prefix


@pytest.mark.parametrize(
    ("path", "cache"),
    [("/", "no-cache"), ("/static/app.js", "no-cache"), ("/health", "no-store"), ("/api/v1/relations", "no-store")],
)
def test_what_may_be_kept_is_asked_for_again(url: str, path: str, cache: str) -> None:
    assert CLIENT.get(url + path).headers["cache-control"] == cache


def test_health_can_be_asked_for_without_its_body(url: str) -> None:
    answer = CLIENT.head(f"{url}/health")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/health", "/metrics", "/api/v1/relations", "/nowhere"])
def test_every_answer_carries_the_security_headers(url: str, path: str) -> None:
    headers = CLIENT.get(url + path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_fault_of_ours_tells_nothing_and_carries_the_headers_too(completer) -> None:  # type: ignore[no-untyped-def]
    app = create_app(lambda: completer)

    @app.get("/api/v1/broken")
    def broken() -> None:
        raise RuntimeError("a secret")

    with running(app) as url:
        answer = CLIENT.get(f"{url}/api/v1/broken")
        assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        counts = CLIENT.get(f"{url}/metrics").text
    assert 'satkgc_requests_total{method="GET",route="/api/v1/broken",status="500"} 1.0' in counts


def test_the_token_is_asked_for_and_the_page_and_health_are_not_behind_it(completer) -> None:  # type: ignore[no-untyped-def]
    with running(create_app(lambda: completer, ServiceSettings(token="geheim-!"))) as url:
        for headers in ({}, {"authorization": "Bearer geheim"}, {"authorization": "Basic geheim-!"}):
            for answer in (
                CLIENT.get(f"{url}/api/v1/relations", headers=headers),
                CLIENT.post(f"{url}/api/v1/complete", json=ASK, headers=headers),
                CLIENT.get(f"{url}/metrics", headers=headers),
                CLIENT.get(f"{url}/api/v1/nowhere", headers=headers),
            ):
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert list(answer.json()) == ["error"]
        right = {"authorization": "Bearer geheim-!"}
        assert CLIENT.get(f"{url}/api/v1/relations", headers=right).status_code == 200
        assert CLIENT.get(f"{url}/metrics", headers=right).status_code == 200
        assert CLIENT.get(f"{url}/").status_code == CLIENT.get(f"{url}/health").status_code == 200


def test_without_a_token_only_local_names_are_answered(url: str) -> None:
    for host, status in (("localhost", 200), ("127.0.0.1:99", 200), ("[::1]:8", 200), ("evil.example", 421), ("", 421)):
        assert CLIENT.get(f"{url}/api/v1/relations", headers={"host": host}).status_code == status


def test_names_that_a_proxy_passes_on_are_answered_where_they_are_allowed(completer) -> None:  # type: ignore[no-untyped-def]
    with running(
        create_app(lambda: completer, ServiceSettings(allow_hosts=("KG.example.org", "other.example")))
    ) as url:
        for host, status in (
            ("kg.example.org", 200),
            ("Other.Example:443", 200),
            ("localhost", 200),
            ("example.org", 421),
        ):
            assert CLIENT.get(f"{url}/api/v1/relations", headers={"host": host}).status_code == status


@pytest.mark.parametrize("wrong", [{"token": ""}, {"token": " "}, {"token": "geheim-ω"}, {"token": "a\nb"}])
def test_a_token_that_nobody_could_send_is_refused(wrong: dict) -> None:
    with pytest.raises(SatkgcError, match="token"):
        ServiceSettings(**wrong)


@pytest.mark.parametrize("name", ["", "https://kg.example.org", "kg.example.org:443", "a b"])
def test_what_is_not_a_host_name_is_refused(name: str) -> None:
    with pytest.raises(SatkgcError, match="is not a host name"):
        ServiceSettings(allow_hosts=(name,))


def test_requests_are_counted_by_route_and_made_up_ones_share_a_label(url: str) -> None:
    CLIENT.get(f"{url}/api/v1/relations")
    for i in range(3):
        CLIENT.get(f"{url}/made-up-{i}")
        CLIENT.request(f"MADEUP{i}", f"{url}/api/v1/relations")
    text = CLIENT.get(f"{url}/metrics").text
    assert 'satkgc_requests_total{method="GET",route="/api/v1/relations",status="200"}' in text
    assert 'satkgc_requests_total{method="other",route="/api/v1/relations",status="405"}' in text
    assert 'satkgc_request_seconds_bucket{le="0.25",route="/api/v1/relations"}' in text
    assert "made-up" not in text
    assert "MADEUP" not in text
