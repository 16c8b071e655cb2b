"""Traces, sent to a receiver of this test's own: OTLP's protobuf, read by its wire format alone (opentelemetry-proto, trace.proto)."""

import http.server
import threading
import time

import pytest
from conftest import ADD, DOUBLE, eventually, run

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def fields(data):
    """A message's fields by number: numbers, or bytes."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or varint()
            value, at = data[at : at + length], at + length
        found.setdefault(key >> 3, []).append(value)
    return found


def attributes(list_):
    result = {}
    for pair in map(fields, list_):
        (kind, (value,)), = fields(pair[2][0]).items()
        result[pair[1][0].decode()] = value.decode() if kind == 1 else value
    return result


class Receiver(http.server.ThreadingHTTPServer):
    """Spans by name, as they come."""

    def __init__(self):
        self.spans, self.services, self.status = [], set(), 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.take(body)
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, body):
        for resource in map(fields, fields(body)[1]):
            self.services.add(attributes(fields(resource[1][0])[1])["service.name"])
            for span in (fields(span) for scope in resource[2] for span in fields(scope)[2]):
                number = lambda field: int.from_bytes(span[field][0], "little")
                self.spans.append({
                    "trace": span[1][0].hex(), "id": span[2][0].hex(), "parent": span.get(4, [b""])[0].hex(), "name": span[5][0].decode(),
                    "kind": span[6][0], "begin": number(7), "end": number(8), "attributes": attributes(span.get(9, [])),
                    "status": fields(span[15][0]).get(3, [0])[0] if 15 in span else 0,
                })

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def named(self, name, **of):
        return [span for span in self.spans if span["name"] == name and all(span[key] == value for key, value in of.items())]


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.shutdown()
    receiver.server_close()


def test_spans_of_requests_and_jobs(begin, receiver):
    service = begin("--traces", receiver.address)
    before = time.time_ns()
    assert service.compute(ADD, headers={"traceparent": PARENT}).status == 200
    job = service.submit(DOUBLE, headers={"traceparent": PARENT.replace("4bf9", "aaaa")}).json["id"]
    service.wait(job)
    assert service.compute(ADD).status == 200
    assert service.compute({**DOUBLE, "expression": ["reshape", "x", {"shape": [2]}]}).status == 422
    # Not sampled: what belongs to it is not sent.
    assert service.compute(ADD, headers={"traceparent": PARENT[:-1].replace("4bf9", "bbbb") + "0"}).status == 200
    assert service.stop() == 0
    assert receiver.services == {"cantus-serve"}

    def below(trace):
        """The request, the work, its wait and its run, of which each begins and ends in the one before."""
        (request,) = [span for span in receiver.spans if span["trace"] == trace and span["kind"] == 2]
        (work,) = [span for span in receiver.spans if span["parent"] == request["id"]]
        queued, run_ = (next(iter(receiver.named(name, parent=work["id"]))) for name in ("queued", "run"))
        assert before <= work["begin"] <= queued["begin"] <= queued["end"] <= run_["begin"] <= run_["end"] <= work["end"] + 1000
        assert request["begin"] <= work["begin"] and {span["trace"] for span in (work, queued, run_)} == {trace}
        return request, work

    request, work = below(PARENT[3:35])
    assert request["parent"] == PARENT[36:52] and request["name"] == "POST /v1/compute"
    assert request["attributes"] == {"http.request.method": "POST", "http.route": "/v1/compute", "http.response.status_code": 200}
    assert work["name"] == "compute" and work["attributes"]["cantus.kind"] == "field" and work["attributes"]["cantus.batch"] == 1
    assert work["attributes"]["cantus.devices"] and work["end"] <= request["end"] + 1000
    request, work = below(PARENT[3:35].replace("4bf9", "aaaa"))
    assert request["name"] == "POST /v1/jobs" and work["name"] == "job" and work["attributes"]["cantus.job"] == job
    # Without a parent a request begins a trace, and a failure says so.
    roots = [span for span in receiver.named("POST /v1/compute") if not span["parent"]]
    assert sorted(root["attributes"]["http.response.status_code"] for root in roots) == [200, 422]
    failed = [span for span in receiver.named("compute") if span["status"] == 2]
    assert [span["attributes"]["error.type"] for span in failed] == ["urn:cantus:problem:invalid-input"]
    assert not [span for span in receiver.spans if span["trace"].startswith("bbbb")]
    assert receiver.named("GET /v1/jobs/{id}")


def test_a_job_that_is_taken_up_again_keeps_its_trace(begin, receiver):
    from test_jobs import products

    service = begin("--traces", f"{receiver.address}/v1/traces")
    job = service.submit(products(3), headers={"traceparent": PARENT}).json["id"]
    service.wait(job, ("running",))
    service.kill()
    service.start()
    assert service.wait(job)["state"] == "done"
    service.stop()
    (work,) = receiver.named("job")
    assert work["trace"] == PARENT[3:35] and work["parent"] not in ("", PARENT[36:52])


def test_a_collector_that_does_not_take_them(begin, receiver):
    """Requests notice nothing, and the figures tell."""
    service = begin("--traces", receiver.address)
    receiver.status = 500
    for _ in range(50):
        assert service.compute(ADD, headers={"traceparent": "no-trace"}).status == 200
    eventually(lambda: service.figure("cantus_traces_failed_total") >= 1)
    assert service.stop() == 0
    for address in ("127.0.0.1:4318", "https://127.0.0.1:4318", "http://"):
        run("--open", "--listen", "127.0.0.1:0", "--data", service.folder, "--traces", address, code=1)
