"""`satkgc serve` as a process: it starts, says where, stops without dropping anybody, and refuses in one line."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from running import CLIENT, running, until

from satkgc.completion import Completer, Question
from satkgc.serving.app import create_app
from satkgc.serving.run import _listen, open_completer
from satkgc.serving.settings import ServiceSettings

COMMAND = [sys.executable, "-m", "satkgc", "serve"]
Serving = tuple[subprocess.Popen[str], str]


def process(run: Path, *options: str, **environment: str) -> AbstractContextManager[Serving]:
    """The command in its own process, and the address that it prints."""
    return started([*COMMAND, str(run), "--port", "0", *options], environment)


@contextmanager
def started(command: list[str], environment: dict[str, str]) -> Iterator[Serving]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert address is not None, line
            yield server, address.group()
        finally:
            server.kill()


def refusal(*arguments: object, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_the_command_serves_asks_for_its_token_and_ends_on_sigterm(run: Path) -> None:
    """With few file descriptors, and more connections at once than there are."""
    few = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *COMMAND, str(run), "--port", "0"]
    with started(few, {"SATKGC_TOKEN": "geheim"}) as (server, url), ExitStack() as burst:
        until(lambda: CLIENT.get(f"{url}/health").status_code == 200)
        ask = {"head": "dog", "relation": "hypernym", "k": 2}
        assert CLIENT.post(f"{url}/api/v1/complete", json=ask).status_code == 401
        for _ in range(400):
            connection = burst.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", int(url.rpartition(":")[2])))
        right = {"authorization": "Bearer geheim"}
        with httpx.Client(trust_env=False, timeout=60) as fresh:  # the one of before may just be closed to make room
            assert len(fresh.post(f"{url}/api/v1/complete", json=ask, headers=right).json()["answers"]) == 2
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""


def test_a_stop_answers_what_is_in_flight_and_takes_nothing_new(completer) -> None:  # type: ignore[no-untyped-def]
    asked, go = threading.Event(), threading.Event()

    class Slow:
        """The completer, which holds its answers back until it may go on."""

        texts_read = completer.texts_read

        def ask_each(self, questions):  # type: ignore[no-untyped-def]
            asked.set()
            go.wait(30)
            return completer.ask_each(questions)

    answers: list[httpx.Response] = []
    body = {"questions": [{"head": "dog", "relation": "hypernym"}] * 100}
    before = batchers()
    with running(create_app(Slow)) as url:
        ask = threading.Thread(target=lambda: answers.append(CLIENT.post(f"{url}/api/v1/batch", json=body)))
        ask.start()
        assert asked.wait(30)
        # Leaving the block asks the server to stop; the answer is let go only after its port is closed.
        threading.Thread(target=lambda: (until(lambda: refuses(url)), go.set())).start()
    ask.join(30)
    assert answers[0].status_code == 200
    assert all(result["answers"] for result in answers[0].json()["results"])
    assert batchers() == before  # its thread has ended


def batchers() -> int:
    return sum(thread.name == "satkgc-batcher" for thread in threading.enumerate())


def refuses(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_what_is_no_run_folder_is_refused_before_a_port_is_opened(tmp_path: Path) -> None:
    assert "no run here" in refusal(tmp_path)
    (tmp_path / "config.json").write_text("{")
    assert "no run here" in refusal(tmp_path)


def test_a_run_that_cannot_be_loaded_ends_the_command_with_its_reason(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    shutil.rmtree(broken / "model")
    command = [*COMMAND, str(broken), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "no model" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_token_is_refused_instead_of_serving_openly(run: Path) -> None:
    assert "the token is empty" in refusal(run, "--token", "")
    assert "the token is empty" in refusal(run, SATKGC_TOKEN="")


def test_requests_are_logged_and_other_names_answered_where_asked_for(run: Path) -> None:
    for options, lines, status in ((["--access-log", "--allow-host", "kg.example"], 1, 200), ([], 0, 421)):
        with process(run, *options) as (server, url):
            assert CLIENT.get(f"{url}/", headers={"host": "kg.example"}).status_code == status
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
            assert server.stdout is not None
            assert server.stdout.read().count(f'"GET / HTTP/1.1" {status}') == lines


def test_a_run_without_an_index_says_what_it_does_and_ends_on_sigterm_meanwhile(unprepared: Path) -> None:
    with process(unprepared) as (server, url):
        until(lambda: CLIENT.get(f"{url}/health").json().get("doing", "").startswith("encoding the entities, "))
        error = CLIENT.get(f"{url}/api/v1/relations").json()["error"]
        assert error.startswith("the model is still loading (encoding the entities, ")
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr is not None
        first, *rest = server.stderr.read().splitlines()
        assert first.startswith("this run has no index yet: its 40,000 entities are encoded first; `satkgc prepare ")
        assert all(line.startswith("tokenising: ") for line in rest)  # on a slow machine


def test_sigterm_ends_a_load_that_is_within_torch(run: Path) -> None:
    program = (
        "import torch\nfrom pathlib import Path\nfrom satkgc.serving import run, settings\n"
        "def forever(*arguments):\n"
        "    square = torch.ones(800, 800)\n"
        "    while True: square @ square\n"
        "run.open_completer = forever\n"
        f"run.serve(Path({str(run)!r}), settings.ServiceSettings(port=0))"
    )
    with started([sys.executable, "-c", program], {}) as (server, _):
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""


def test_a_question_is_asked_before_anybody_else_can(run: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    asked: list[Question] = []
    real = Completer.ask
    monkeypatch.setattr(Completer, "ask", lambda self, questions: asked.extend(questions) or real(self, questions))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    open_completer(run, "cpu", lambda progress: None)
    assert len(asked) == 1


def test_answers_do_not_wait_for_an_acknowledgement() -> None:
    with _listen(ServiceSettings(port=0)) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_taken_port_is_one_line(run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in refusal(run, "--port", port)


def test_without_the_extra_the_command_says_what_to_install(run: Path) -> None:
    # An import hook that knows no fastapi, as where it is not installed.
    program = (
        "import sys; sys.modules['fastapi'] = None\n"
        f"sys.argv = ['satkgc', 'serve', {str(run)!r}]\n"
        "from satkgc.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "pip install 'satkgc[serve]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_open_address_without_a_token_is_warned_about(run: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:  # taken, so that nothing is really opened
        command = [*COMMAND, str(run), "--host", "0.0.0.0", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert "no token is set" in done.stderr
        done = subprocess.run([*command, "--token", "x"], capture_output=True, text=True, timeout=120)
        assert "no token is set" not in done.stderr
        assert done.returncode == 2


ARENAS = """
import ctypes, threading
from satkgc.serving.run import limit_arenas
limit_arenas()
libc, together, held = ctypes.CDLL(None), threading.Barrier(12), []
libc.fopen.restype = ctypes.c_void_p
def work():
    together.wait()
    held.append(bytearray(50_000))
    together.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_threads_share_two_arenas() -> None:
    """One for each thread keeps what it needed at most: the memory of a service grew for an hour."""
    command = [sys.executable, "-c", ARENAS]
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert 1 <= told.count("<heap nr=") <= 2
    own = subprocess.run(command, capture_output=True, text=True, env={**environment, "MALLOC_ARENA_MAX": "4"}).stdout
    assert 3 <= own.count("<heap nr=") <= 4  # what the environment says goes before
