"""The service as a real process on loopback, one for each test that asks for it."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

# A run under nohup ignores the signal, and what it starts inherits that: the service would take it as a wish to outlive its terminal.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

PROGRAM = os.environ["CANTUS_SERVE"].split()
# Seconds after which what must happen counts as never: a busy machine may take its time, and nothing waits for longer than it has to.
LIMIT = 120
ADD = {"kind": "field", "field": "bn254-fr", "function": "add", "a": [1, "2"], "b": ["0x10", 5]}
DOUBLE = {"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1, 2, 3]}}, "expression": ["mul", "x", 2]}


def eventually(condition, what=None):
    """Waits until the condition is true, and returns its value."""
    until = time.time() + LIMIT
    while not (found := condition()):
        assert time.time() < until, what and what()
        time.sleep(0.02)
    return found


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Service:
    """A process, and requests to it."""

    def __init__(self, folder, *arguments, keys=False, expect=None, environment=None, before=()):
        self.folder = folder
        self.arguments = ["--listen", "127.0.0.1:0", "--data", str(folder), *([] if keys else ["--open"]), *arguments]
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.dirname(str(folder)), **(environment or {})}
        self.before = list(before)
        self.key = None
        self.tls = None
        self.process = None
        if expect is None:
            self.start()

    def start(self):
        # As a user would run it, without what the caller's shell sets for Cantus.
        environment = {name: value for name, value in self.environment.items() if not name.startswith("CANTUS_")}
        self.process = subprocess.Popen(
            [*self.before, *PROGRAM, *self.arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.lines = []
        for line in self.process.stderr:
            line = line.decode()
            self.lines.append(line)
            if found := re.search(r"listening on https?://127.0.0.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(f"it did not start: {''.join(self.lines)}")
        threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True).start()
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        return self

    def _read(self, stream):
        for line in stream:
            self.lines.append(line.decode(errors="replace"))

    def connect(self, timeout=LIMIT):
        if self.tls:
            return http.client.HTTPSConnection("localhost", self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, key=None, connection=None):
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        if key or self.key:
            headers.setdefault("Authorization", f"Bearer {key or self.key}")
        own = connection or self.connect()
        own.request(method, path, body=body, headers=headers)
        answer = own.getresponse()
        content = answer.read()
        if connection is None:
            own.close()
        return Answer(answer.status, dict(answer.getheaders()), content)

    def compute(self, work, **more):
        return self.ask("POST", "/v1/compute", work, **more)

    def submit(self, work, **more):
        return self.ask("POST", "/v1/jobs", work, **more)

    def job(self, job):
        return self.ask("GET", f"/v1/jobs/{job}").json

    def wait(self, job, states=("done", "failed", "cancelled")):
        def ended():
            found = self.job(job)
            return found["state"] in states and found

        return eventually(ended, lambda: self.job(job))

    def waiting(self):
        """Requests that wait for the first device, or run on it."""
        return self.ask("GET", "/v1/devices").json[0]["waiting"]

    def figure(self, name):
        """A figure of the metrics, summed over its labels."""
        text = self.ask("GET", "/metrics").body.decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (.+)$", text, re.M))

    def raw(self, data, read=True, timeout=LIMIT):
        """Bytes as they are; what came back until the connection ended, or nothing more came."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(data)
            answer = b""
            with contextlib.suppress(TimeoutError, ConnectionError):
                while read and (part := connection.recv(65536)):
                    answer += part
            return answer

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=LIMIT):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(seconds)
        return self.process.returncode if self.process else None

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) * 1024


def run(*arguments, code=0):
    done = subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def begin(tmp_path):
    """Begins services that end with the test."""
    begun = []

    def begin(*arguments, folder="data", **more):
        begun.append(Service(tmp_path / folder, *arguments, **more))
        return begun[-1]

    yield begin
    for service in begun:
        if service.process and service.process.poll() is None:
            service.kill()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """One open service for the tests of a file that leave it as it was."""
    service = Service(tmp_path_factory.mktemp("serve") / "data", "--kernels", "--kernel-time", "60", "--patience", "2")
    yield service
    assert service.stop() == 0, service.lines


def pytest_runtest_logreport(report):
    """Writes each skipped test to CANTUS_SKIPS, which ./test lists at its end."""
    path = os.environ.get("CANTUS_SKIPS")
    if path and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        why = " ".join(reason.removeprefix("Skipped: ").split())
        with open(path, "a", encoding="utf-8") as skips:
            skips.write(f"{report.nodeid}\t{why}\n")
