"""Answers in every form, and refusals with their place."""

import io
import json
import math
import os
import pathlib
import subprocess

import numpy as np
import pytest
from conftest import ADD, DOUBLE, LIMIT, Service, eventually
from safetensors.numpy import load, save

P = 21888242871839275222246405745257275088548364400416034343698204186575808495617


def expression(expression, **inputs):
    arrays = {name: {"dtype": dtype, "shape": list(np.shape(data)), "data": np.ravel(data).tolist()} for name, (dtype, data) in inputs.items()}
    return {"kind": "expression", "inputs": arrays, "expression": expression}


def test_numbers_are_read_to_the_last_bit(service):
    rng = np.random.default_rng(5)
    numbers = rng.uniform(-1, 1, 3000) * 10.0 ** rng.integers(-300, 300, 3000)
    answer = service.compute(expression(["neg", "x"], x=("f64", numbers))).json
    assert answer["data"] == (-numbers).tolist()


def test_fields(service):
    answer = service.compute(ADD).json
    assert answer["dtype"] == "bn254-fr" and answer["shape"] == [2]
    assert [int(element, 16) for element in answer["data"]] == [17, 7]
    rng = np.random.default_rng(1)
    a, b = ([int.from_bytes(rng.bytes(32), "big") % P for _ in range(50)] for _ in range(2))
    for function, expected in {
        "add": lambda x, y: (x + y) % P, "sub": lambda x, y: (x - y) % P, "mul": lambda x, y: x * y % P,
    }.items():
        work = {"kind": "field", "field": "bn254-fr", "function": function, "a": list(map(str, a)), "b": list(map(hex, b))}
        assert [int(element, 16) for element in service.compute(work).json["data"]] == list(map(expected, a, b))
    work = {"kind": "field", "field": "bn254-fr", "function": "inverse", "a": list(map(hex, a))}
    assert all(int(element, 16) * x % P == 1 for element, x in zip(service.compute(work).json["data"], a))
    work = {"kind": "field", "field": "bn254-fr", "function": "dot", "a": list(map(str, a)), "b": list(map(str, b))}
    assert int(service.compute(work).json["data"][0], 16) == sum(x * y for x, y in zip(a, b)) % P
    small = {"kind": "field", "field": "goldilocks", "function": "mul", "a": [2**63, 3], "b": [2, 5]}
    assert [int(element, 16) for element in service.compute(small).json["data"]] == [2**64 % (2**64 - 2**32 + 1), 15]


def test_transforms(service):
    there = service.compute({"kind": "ntt", "field": "babybear", "a": [1, 2, 3, 4]}).json
    assert int(there["data"][0], 16) == 10
    back = service.compute({"kind": "ntt", "field": "babybear", "a": there["data"], "inverse": True}).json
    assert [int(element, 16) for element in back["data"]] == [1, 2, 3, 4]
    assert service.compute({"kind": "ntt", "field": "babybear", "a": [1, 2, 3]}).json["pointer"] == "/a"
    assert service.compute({"kind": "ntt", "field": "babybear", "a": [1], "coset": 2013265921}).json["pointer"] == "/coset"


def test_curves(service):
    generator = f"{1:064x}{2:064x}"
    double = "030644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd315ed738c0e0a7c92e7845f96b2ae9c0a68a6a449e3538fc7ff3ebf7a5a18a2c4"
    answer = service.compute({"kind": "msm", "curve": "bn254-g1", "points": generator, "scalars": [2]}).json
    assert answer["data"] == ["0x" + double] and answer["dtype"] == "bn254-g1"
    wrong = service.compute({"kind": "msm", "curve": "bn254-g1", "points": f"{1:064x}{3:064x}", "scalars": [2]})
    assert wrong.status == 422, wrong.body
    assert service.compute({"kind": "msm", "curve": "bn254-g1", "points": "0x12x4", "scalars": [2]}).json["pointer"] == "/points"


def test_expressions(service):
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[2.0], [4.0]], dtype=np.float32)
    for tree, expected in [
        (["add", ["mul", "x", "y"], 1], x * y + 1),
        (["sum", "x", {"axes": [0], "keep": True}], x.sum(0, keepdims=True)),
        (["where", ["greater", "x", 2], "x", 0], np.where(x > 2, x, 0)),
        (["sub", 1, "x"], 1 - x),
        (["matmul", ["transpose", "x"], "y"], x.T @ y),
        (["sort", "x", {"axis": 1, "descending": True}], np.sort(x, 1)[:, ::-1]),
        (["softmax", "x"], np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        (["reshape", "x", {"shape": [3, 2]}], x.reshape(3, 2)),
        (["slice", "x", {"ranges": [[0, 1], [1, 3]]}], x[0:1, 1:3]),
        (["concat", "x", "x", {"axis": 0}], np.concatenate([x, x])),
        (["clamp", "x", {"low": 1, "high": 4}], x.clip(1, 4)),
        (["cumsum", "x", {"axis": 1}], x.cumsum(1)),
        (["exp", ["neg", "x"]], np.exp(-x)),
        ("x", x),
    ]:
        answer = service.compute(expression(tree, x=("f32", x), y=("f32", y)))
        assert answer.status == 200, (tree, answer.body)
        result = np.array(answer.json["data"]).reshape(answer.json["shape"])
        assert result.shape == expected.shape and np.allclose(result, expected, rtol=1e-5), tree
    answer = service.compute(expression(["div", "x", 0], x=("f32", [1.0, -1.0, 0.0]))).json
    assert answer["data"] == ["Infinity", "-Infinity", "NaN"]
    for dtype, data in [("i64", [-(2**63), 2**63 - 1]), ("u64", [2**64 - 1, 0]), ("i8", [-128, 127]), ("bool", [True, False]), ("f16", [65504.0, 0.5])]:
        answer = service.compute({"kind": "expression", "inputs": {"x": {"dtype": dtype, "data": data}}, "expression": "x"})
        assert answer.status == 200 and answer.json["data"] == data, answer.body


def test_numbers_beyond_float64(service):
    """Whole numbers are what was written, wherever they stand; what cannot be that is refused."""
    for dtype, zero, number in [
        ("i64", 0, 2**53 + 1), ("i64", 0, -(2**53) - 1), ("i64", 0, 2**63 - 1), ("i64", 0, -(2**63)), ("i64", 0, 2**62 + 1),
        ("u64", 0, 2**53 + 1), ("u64", 0, 2**64 - 1), ("u64", 0, 2**63 + 12345), ("i64", 5, 3 * 2**54 + 1),
    ]:
        data = [zero, zero]
        for tree in (["add", "x", number], ["add", number, "x"], ["maximum", ["mul", "x", 0], number] if number > 0 else ["minimum", ["mul", "x", 0], number]):
            answer = service.compute({"kind": "expression", "inputs": {"x": {"dtype": dtype, "data": data}}, "expression": tree})
            expected = number + zero if tree[0] == "add" else number
            assert answer.status == 200 and answer.json["data"] == [expected] * 2, (tree, answer.body)
    clamp = {"kind": "expression", "inputs": {"x": {"dtype": "i64", "data": [-(2**63), 0, 2**63 - 1]}}}
    limits = {"low": -(2**60) - 1, "high": 2**60 + 1}
    assert service.compute({**clamp, "expression": ["clamp", "x", limits]}).json["data"] == [limits["low"], 0, limits["high"]]
    assert service.compute({**clamp, "expression": ["clamp", "x", {"low": 2**60 + 1, "high": 2**60}]}).status == 422
    for dtype, number in [("i64", 2**63), ("u64", -1), ("u64", 2**64), ("i64", 1e19), ("i32", 2**53 + 1)]:
        work = {"kind": "expression", "inputs": {"x": {"dtype": dtype, "data": [0]}}, "expression": ["add", "x", number]}
        assert service.compute(work).status == 422, (dtype, number)
    # With a point it is a float64, which from there on may be another number.
    text = '{"kind": "expression", "inputs": {"x": {"dtype": "i64", "data": [9007199254740993.0]}}, "expression": "x"}'
    answer = service.ask("POST", "/v1/compute", text.encode(), {"Content-Type": "application/json"})
    assert answer.status == 422 and answer.json["pointer"] == "/inputs/x/data/0"


def test_pictures(service):
    answer = service.ask("POST", "/v1/compute", {"kind": "picture", "picture": "field", "width": 8, "height": 4, "frequency": 432}, {"Accept": "application/x-npy"})
    assert np.load(io.BytesIO(answer.body)).shape == (4, 8)
    assert service.compute({"kind": "picture", "picture": "field", "width": 0, "height": 4}).json["pointer"] == "/width"
    assert service.compute({"kind": "picture", "picture": "field", "width": 2**31, "height": 2**31}).status == 413


def test_bytes_in_and_out(service):
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    file = io.BytesIO()
    np.save(file, x)
    request = json.dumps({"kind": "expression", "expression": ["mul", "x", 2]})
    from urllib.parse import quote

    npy = service.ask("POST", f"/v1/compute?request={quote(request)}", file.getvalue(), {"Content-Type": "application/x-npy", "Accept": "application/x-npy"})
    assert np.array_equal(np.load(io.BytesIO(npy.body)), x * 2)
    body = save({"x": x, "y": x}, {"request": json.dumps({"kind": "expression", "expression": ["add", "x", "y"]})})
    answer = service.ask("POST", "/v1/compute", body, {"Content-Type": "application/vnd.safetensors", "Accept": "application/vnd.safetensors"})
    assert np.array_equal(load(answer.body)["result"], x * 2)
    head = json.dumps({"request": {"kind": "field", "field": "bn254-fr", "function": "add"}, "arrays": [{"name": name, "dtype": "u32", "shape": [1, 8]} for name in "ab"]})
    limbs = np.arange(16, dtype="<u4").tobytes()
    raw = service.ask("POST", "/v1/compute", head.encode() + b"\n" + limbs, {"Content-Type": "application/octet-stream", "Accept": "application/octet-stream"})
    line, bytes_ = raw.body.split(b"\n", 1)
    assert json.loads(line) == {"dtype": "u32", "shape": [1, 8], "bytes": 32}
    assert np.array_equal(np.frombuffer(bytes_, "<u4"), np.arange(8) * 2 + 8)


KERNEL = """
struct Params { a: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
override scale: f32 = 1.0;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = scale * params.a * x[id.x]; }
}"""


def kernel(text=KERNEL, **more):
    work = {
        "kind": "kernel", "wgsl": text, "workgroups": [1], "overrides": {"scale": 10},
        "bindings": {"params": {"dtype": "f32", "data": [2]}, "x": {"dtype": "f32", "data": [1, 2, 3]}},
        "zeros": {"y": {"dtype": "f32", "shape": [3]}}, "output": "y",
    }
    return {**work, **more}


def test_kernels(service):
    assert service.compute(kernel()).json["data"] == [20, 40, 60]
    # From the library a kernel may import; nothing of this machine's files.
    imports = "import cantus::safe::is_finite;\n" + KERNEL.replace("scale * ", "select(0.0, scale, is_finite(scale)) * ")
    assert service.compute(kernel(imports)).json["data"] == [20, 40, 60]
    assert "other" in service.compute(kernel(imports.replace("cantus::safe", "other::safe"))).json["detail"]
    wrong = service.compute(kernel(KERNEL.replace("scale * ", "scale + * "))).json
    assert wrong["place"]["line"] == 8 and wrong["status"] == 422
    assert service.compute(kernel(output="x")).json["pointer"] == "/output"
    for workgroups in ([0], [65535, 65535, 65535], [2**31, 2]):
        assert service.compute(kernel(workgroups=workgroups)).json["pointer"] == "/workgroups"
    assert service.compute(kernel(overrides={"scale": 2**53 + 1})).json["pointer"] == "/overrides/scale"
    unset = service.compute(kernel(KERNEL.replace(" = 1.0;", ";"), overrides={})).json
    assert unset["detail"] == 'the override "scale" cannot be set: it has no default and no value was set', unset
    assert service.compute(kernel("x" * 70_000)).json["pointer"] == "/wgsl"
    assert service.compute(kernel(zeros={"y": {"dtype": "f32", "shape": [1 << 30]}})).status == 413


SHRINK = """
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var smp: sampler;
@group(0) @binding(2) var half: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(half);
    if all(id.xy < size) { textureStore(half, id.xy, textureSampleLevel(image, smp, (vec2f(id.xy) + 0.5) / vec2f(size), 0.0)); }
}"""


def test_kernels_with_textures(service):
    photo = np.random.default_rng(3).integers(0, 256, (6, 10, 3), np.uint8)
    work = {
        "kind": "kernel", "wgsl": SHRINK, "workgroups": [1], "output": "half",
        "bindings": {"image": {"dtype": "u8", "shape": [6, 10, 3], "data": photo.ravel().tolist()}},
        "zeros": {"half": {"dtype": "u8", "shape": [3, 5, 4]}},
    }
    answer = service.compute(work).json
    assert (answer["dtype"], answer["shape"]) == ("u8", [3, 5, 4]), answer
    half = np.array(answer["data"]).reshape(3, 5, 4)
    mean = photo.reshape(3, 2, 5, 2, 3).mean((1, 3))
    assert (half[..., 3] == 255).all() and np.abs(half[..., :3] - mean).max() <= 0.5 + 1e-3
    refused = lambda **more: service.compute({**work, **more}).json  # noqa: E731
    assert refused(output="image")["pointer"] == "/output"
    assert "4 channels" in refused(zeros={"half": {"dtype": "u8", "shape": [3, 5]}})["detail"]
    assert "elements of u8" in refused(zeros={"half": {"dtype": "f32", "shape": [3, 5, 4]}})["detail"]
    assert refused(zeros={"half": {"dtype": "u8", "shape": [0, 5, 4]}})["status"] == 422
    wide = {"image": {"dtype": "u8", "shape": [1, 1, 5], "data": [0] * 5}}
    assert "no format of 5 channels of u8" in refused(bindings=wide)["detail"]


@pytest.mark.skipif(not list(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")), reason="there is no driver of OpenCL")
@pytest.mark.parametrize("path", [os.environ["PATH"], ""])
def test_kernels_on_opencl(begin, path):
    """A driver writes what it compiles, and starts programs for it: also where the service knows of none."""
    service = begin("--kernels", "opencl:0", "--kernel-time", "60", environment={"PATH": path})
    answer = service.compute(kernel())
    assert answer.status == 200 and answer.json["data"] == [20, 40, 60] and answer.json["device"] != "cpu", answer.body


@pytest.mark.parametrize(
    ("work", "status", "pointer"),
    [
        ({}, 422, "/kind"),
        ({"kind": "nothing"}, 422, "/kind"),
        ({**ADD, "field": "bn255"}, 422, "/field"),
        ({**ADD, "more": 1}, 422, "/more"),
        ({**ADD, "b": [1]}, 422, "/b"),
        ({**ADD, "a": [1, -1]}, 422, "/a/1"),
        ({**ADD, "a": [1, 1.5]}, 422, "/a/1"),
        ({**ADD, "a": [str(P), "1"]}, 422, "/a/0"),
        ({**ADD, "a": ["0x" + "f" * 500, 1]}, 422, "/a/0"),
        ({**DOUBLE, "expression": ["mul", "y", 2]}, 422, "/expression/1"),
        ({**DOUBLE, "expression": ["bogus", "x"]}, 422, "/expression/0"),
        ({**DOUBLE, "expression": ["mul", "x"]}, 422, "/expression"),
        ({**DOUBLE, "expression": 3}, 422, "/expression"),
        ({**DOUBLE, "expression": ["reshape", "x", {"shape": [2, 2]}]}, 422, "/expression"),
        ({**DOUBLE, "expression": ["add", "x", ["exp", ["broadcast_to", ["reshape", "x", {"shape": [3, 1]}], {"shape": [3, 4, 5]}]]]}, 422, "/expression/2/1"),
        ({**DOUBLE, "expression": ["broadcast_to", ["reshape", "x", {"shape": [3, 1, 1]}], {"shape": [3, 100000, 100000]}]}, 413, "/expression"),
        ({**DOUBLE, "inputs": {"x": {"dtype": "u8", "data": [1, 256]}}}, 422, "/inputs/x/data/1"),
        ({**DOUBLE, "inputs": {"x": {"dtype": "f32", "data": [1e39]}}}, 422, "/inputs/x/data/0"),
        ({**DOUBLE, "inputs": {"x": {"dtype": "f32", "shape": [2], "data": [1]}}}, 422, "/inputs/x/shape"),
        ({**DOUBLE, "inputs": {"x": {"dtype": "f32", "shape": [0, 4294967295, 4294967295], "data": []}}}, None, None),
    ],
)
def test_what_is_wrong_has_its_place(service, work, status, pointer):
    answer = service.compute(work)
    if status is None:
        assert answer.status < 500, answer.body
        return
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == status and answer.json.get("pointer") == pointer, answer.body


def test_forms_that_are_not_taken(service):
    assert service.ask("POST", "/v1/compute", b"{", {"Content-Type": "application/json"}).status == 400
    assert service.ask("POST", "/v1/compute", b"a=b", {"Content-Type": "text/plain"}).status == 415
    assert service.ask("POST", "/v1/compute", json.dumps(ADD).encode()).status == 415
    assert service.compute(ADD, headers={"Content-Encoding": "gzip"}).status == 415
    assert service.compute(ADD, headers={"Content-Encoding": "identity"}).status == 200
    assert service.compute(ADD, headers={"Accept": "image/png"}).status == 406
    weighed = service.compute(ADD, headers={"Accept": "application/json;q=0.5, application/x-npy"})
    assert weighed.headers["content-type"] == "application/x-npy"
    first = service.ask("GET", "/")
    assert first.status == 303 and first.headers["location"] == "/docs" and b"/docs" in first.body
    assert service.ask("GET", "/v1/jobs/%ff%fe").headers["content-type"] == "application/problem+json"
    assert service.ask("PUT", "/v1/compute").status == 405
    assert service.ask("GET", "/v2").status == 404
    complex_ = {"kind": "expression", "inputs": {"x": {"dtype": "complex64", "data": [[1, 2], 3]}}, "expression": "x"}
    assert service.compute(complex_).json["data"] == [[1, 2], [3, 0]]
    assert service.compute(complex_, headers={"Accept": "application/vnd.safetensors"}).status == 406


def test_pages(service):
    page = service.ask("GET", "/docs")
    assert page.status == 200 and b"cumsum" in page.body and "default-src 'none'" in page.headers["content-security-policy"]
    assert b"http://" not in page.body and b"https://" not in page.body
    for part in ("/docs/page.js", "/docs/page.css", "/openapi.json", "/health", "/ready", "/metrics"):
        assert service.ask("GET", part).status == 200
    assert service.ask("GET", "/openapi.json").json["openapi"].startswith("3.1")
    devices = service.ask("GET", "/v1/devices").json
    assert devices and devices[0]["memory_limit"] == 2 << 30 and devices[0]["wrong"] == []
    assert {row["unit"] for row in service.ask("POST", "/v1/benchmark").json} == {"elements/s", "bytes/s", "FLOP/s"}


def test_the_monitor(tmp_path):
    import os

    service = Service(tmp_path / "data", environment={"XDG_RUNTIME_DIR": str(tmp_path)})
    try:
        service.compute(ADD)
        watched = eventually(lambda: (found := service.ask("GET", "/v1/monitor").json)["engines"] and found)
        processor = next(device for device in watched["devices"] if device["source"] == "system")
        total = int(open("/proc/meminfo").readline().split()[1]) * 1024
        assert processor["memory_total_bytes"] == {"value": total}
        assert processor["processes"]["value"] is None and processor["processes"]["reason"]
        assert {engine["process"] for engine in watched["engines"]} == {service.process.pid}
        assert all(engine["events"] == [] for engine in watched["engines"])
        counted = lambda: sum(engine["dispatches"] for engine in service.ask("GET", "/v1/monitor").json["engines"])
        eventually(lambda: service.compute(DOUBLE) and counted() > 0)
        assert os.listdir(tmp_path / "cantus")
    finally:
        service.stop()
    assert os.listdir(tmp_path / "cantus") == []


def test_figures_are_prometheus(service):
    service.compute(ADD)
    import re

    text = service.ask("GET", "/metrics").body.decode()
    line = re.compile(r'^[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)*\})? [0-9.e+-]+$')
    for row in text.splitlines():
        assert row.startswith("# ") or line.match(row), row
    assert 'cantus_requests_total{route="/v1/compute",status="200"}' in text


def test_nothing_of_the_machine(service):
    import os

    for work in (DOUBLE, {**DOUBLE, "expression": ["cholesky", "x"]}, {**DOUBLE, "expression": ["inverse", "x"]}):
        answer = service.compute(work).body.decode()
        for word in (os.getcwd(), "/home", "/work", "/usr", ".rs:", "panicked"):
            assert word not in answer
    assert math.isclose(service.compute(DOUBLE).json["data"][1], 4)


def test_arguments(tmp_path):
    from conftest import PROGRAM

    for arguments in (["--open", "--listen", "0.0.0.0:0"], ["--open", "--on", "nothing"], ["--keys", str(tmp_path / "none.toml")]):
        done = subprocess.run([*PROGRAM, "--data", str(tmp_path / "d"), *arguments], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode != 0 and "error: " in done.stderr, done


def test_nothing_is_dropped(service):
    """Two values for one thing are refused, and so is an argument that the function does not take."""
    def refused(work, pointer, **more):
        answer = service.ask("POST", "/v1/compute", work, **more)
        assert (answer.status, answer.json.get("pointer")) == (422, pointer), answer.body

    zeros = {"y": {"dtype": "f32", "shape": [3]}}
    given = {"x": {"dtype": "f32", "data": [1, 2, 3]}, "y": {"dtype": "f32", "data": [1, 2, 3]}}
    refused(kernel(bindings=given, zeros=zeros), "/zeros/y")
    one = '{"dtype": "f32", "data": [1]}'
    typed = {"Content-Type": "application/json"}
    twice = f'{{"kind": "expression", "inputs": {{"x": {one}, "x": {one}}}, "expression": ["max", "x"]}}'
    refused(twice, "/inputs", headers=typed)
    for name, value in (("bindings", one), ("zeros", '{"dtype": "f32", "shape": [3]}'), ("overrides", "1")):
        work = json.dumps({**kernel(), name: "?"}).replace('"?"', f'{{"y": {value}, "y": {value}}}')
        refused(work, f"/{name}", headers=typed)
    # In the JSON and as bytes; as bytes twice.
    array = {"name": "x", "dtype": "f32", "shape": [1]}
    for inputs, arrays, pointer in (({"x": json.loads(one)}, [array], "/inputs/x"), ({}, [array, array], "/inputs/x")):
        head = {"request": {"kind": "expression", "inputs": inputs, "expression": ["max", "x"]}, "arrays": arrays}
        refused(json.dumps(head).encode() + b"\n" + bytes(4 * len(arrays)), pointer, headers={"Content-Type": "application/octet-stream"})
    head = {"request": {**ADD, "a": [1], "b": [1]}, "arrays": [{"name": "a", "dtype": "u32", "shape": [1, 8]}]}
    refused(json.dumps(head).encode() + b"\n" + bytes(32), "/a", headers={"Content-Type": "application/octet-stream"})
    # Other arguments of a function than its own.
    for node in (["exp", "x", {"axes": [0]}], ["sum", "x", {"axis": 0}], ["sort", "x", {"keep": True}], ["clamp", "x", {"low": 0, "high": 1, "axis": 0}]):
        refused(expression(node, x=("f32", [1.0])), "/expression")
    refused({"kind": "picture", "picture": "phi_pattern", "width": 2, "height": 2, "time": 1.5}, "/time")
