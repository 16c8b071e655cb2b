"""Hashes, curves and extensions: published vectors, Python's own arithmetic, and what is refused, with its place."""

import hashlib
import random

import pytest

P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
BLS = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
# BLS12-381's generators, compressed, as Zcash published them.
BLS_G1 = "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
BLS_G2 = (
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
)


def numbers(answer):
    assert answer.status == 200, answer.body
    return [int(element, 16) for element in answer.json["data"]]


def refused(service, work, pointer, status=422):
    answer = service.compute(work)
    assert (answer.status, answer.json.get("pointer")) == (status, pointer), answer.body
    job = service.submit(work)
    if job.status == 202:
        # Whether points are of their group takes long to say: that is work, and the job fails.
        assert work["kind"] in ("curve", "msm"), work
        job = service.wait(job.json["id"])
        assert job["state"] == "failed" and (job["problem"]["status"], job["problem"]["pointer"]) == (status, pointer), job
    else:
        assert job.status == status
    return answer.json["detail"]


def test_digests(service):
    two = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"
    messages = [b"", b"abc", two, b"a" * 10_000]
    work = {"kind": "hash", "function": "sha-256", "messages": ["0x" + message.hex() for message in messages]}
    answer = service.compute(work).json
    # FIPS 180's examples.
    assert answer["dtype"] == "digest" and answer["shape"] == [4]
    assert answer["data"][:3] == [
        "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "0x248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ]
    assert answer["data"][3] == "0x" + hashlib.sha256(messages[3]).hexdigest()
    answer = service.compute({"kind": "hash", "function": "keccak-256", "messages": ["", "616263"]}).json
    # Ethereum's hash of no code, and Keccak's of "abc".
    assert answer["data"] == [
        "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
        "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
    ]
    # More than are hashed at once.
    messages = [bytes([number & 255, number >> 8]) * (number % 90) for number in range(5000)]
    answer = service.compute({"kind": "hash", "function": "sha-256", "messages": [message.hex() for message in messages]}).json
    assert answer["data"] == ["0x" + hashlib.sha256(message).hexdigest() for message in messages]
    refused(service, {"kind": "hash", "function": "sha-256", "messages": ["00", "0"]}, "/messages/1")
    refused(service, {"kind": "hash", "function": "sha-256", "messages": ["zz"]}, "/messages/0")
    refused(service, {"kind": "hash", "function": "sha-256", "messages": []}, "/messages")
    refused(service, {"kind": "hash", "function": "md5", "messages": [""]}, "/function")


def test_trees(service):
    leaves = [bytes([number] * number) for number in range(16)]
    levels = [[hashlib.sha256(leaf).digest() for leaf in leaves]]
    while len(levels[-1]) > 1:
        last = levels[-1]
        levels.append([hashlib.sha256(last[at] + last[at + 1]).digest() for at in range(0, len(last), 2)])
    work = {"kind": "merkle", "function": "sha-256", "leaves": [leaf.hex() for leaf in leaves]}
    assert service.compute(work).json["data"] == ["0x" + levels[-1][0].hex()]
    path = [level[(11 >> height) ^ 1] for height, level in enumerate(levels[:-1])]
    assert service.compute({**work, "path": 11}).json["data"] == ["0x" + node.hex() for node in path]
    refused(service, {**work, "path": 16}, "/path")
    refused(service, {**work, "leaves": ["00"] * 3}, "/leaves")
    refused(service, {**work, "leaves": ["00", "0g"]}, "/leaves/1")


@pytest.mark.parametrize("field, width, first, last", [
    ("babybear", 16, [1906786279, 1737026427, 1959749225, 700325316], 304856115),
    ("babybear", 24, [57973606, 1742549659, 409441332, 409968379], 766005377),
    ("koalabear", 16, [1259554834, 663463928, 1989430097, 476523442], 1592576868),
    ("koalabear", 24, [723511737, 87131171, 587052829, 1323145575], 1815724394),
])
def test_poseidon2_is_plonky3s(service, field, width, first, last):
    """Plonky3's default instances, applied to 0, 1, 2, …"""
    answer = service.compute({"kind": "poseidon2", "field": field, "function": "permute", "width": width, "a": list(range(width)) * 2})
    values = numbers(answer)
    assert values[:4] == first and values[width - 1] == last and values[width:] == values[:width]
    assert answer.json["shape"] == [2, width]


def test_poseidon2_of_bn254(service):
    """The example of the authors' own program."""
    answer = service.compute({"kind": "poseidon2", "field": "bn254-fr", "function": "permute", "width": 3, "a": [0, 1, 2]})
    assert answer.json["data"] == [
        "0x0bb61d24daca55eebcb1929a82650f328134334da98ea4f847f760054f4a3033",
        "0x303b6f7c86d043bfcbcc80214f26a30277a15d3f74ca654992defe7ff8d03570",
        "0x1ed25194542b12eef8617361c3ba7c52e660b145994427cc86296242cf766ec8",
    ]


def test_poseidon2_trees(service):
    """Hash and root are made of the permutation."""
    def permute(state):
        return numbers(service.compute({"kind": "poseidon2", "field": "koalabear", "function": "permute", "width": 16, "a": state}))

    row = list(range(1, 20))
    state = [0] * 16
    for start in range(0, len(row), 8):
        part = row[start : start + 8]
        state[: len(part)] = part
        state = permute(state)
    work = {"kind": "poseidon2", "field": "koalabear", "width": 16}
    hashed = service.compute({**work, "function": "hash", "rate": 8, "out": 8, "a": row})
    assert numbers(hashed) == state[:8] and hashed.json["shape"] == [1, 8]
    digests = [[8 * leaf + place for place in range(8)] for leaf in range(4)]
    flat = sum(digests, [])
    while len(digests) > 1:
        digests = [permute(digests[at] + digests[at + 1])[:8] for at in range(0, len(digests), 2)]
    assert numbers(service.compute({**work, "function": "root", "columns": 8, "a": flat})) == digests[0]
    for change, pointer in [
        ({"width": 17}, "/width"), ({"field": "goldilocks"}, "/field"), ({"a": [1] * 15}, "/a"), ({"a": [1] * 15 + [2130706433]}, "/a/15"),
        ({"rate": 4}, "/rate"), ({"columns": 16}, "/columns"), ({"function": "hash", "out": 4}, "/rate"), ({"function": "hash", "rate": 17, "out": 4}, "/rate"),
        ({"function": "root", "columns": 4, "a": [1] * 12}, "/columns"), ({"function": "root", "columns": 9, "a": [1] * 18}, "/columns"),
    ]:
        refused(service, {**work, "function": "permute", "a": [1] * 16, **change}, pointer)


def add(a, b):
    """The sum of two points of BN254's first group; infinity is (0, 0)."""
    if a == (0, 0) or b == (0, 0):
        return b if a == (0, 0) else a
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return 0, 0
    slope = 3 * a[0] ** 2 * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope**2 - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def multiply(point, scalar):
    result = 0, 0
    while scalar:
        result = add(result, point) if scalar & 1 else result
        point, scalar = add(point, point), scalar >> 1
    return result


def hex_(point):
    return f"0x{point[0]:064x}{point[1]:064x}"


def test_curve_of_eip_196(service):
    # go-ethereum's chfast1 of the precompile for additions.
    a = 0x18B18ACFB4C2C30276DB5411368E7185B311DD124691610C5D3B74034E093DC9, 0x063C909C4720840CB5134CB9F59FA749755796819658D32EFC0D288198F37266
    b = 0x07C2B7F58A84BD6145F00C9C2BC0BB1A187F20FF2C92963A88019E7C6A014EED, 0x06614E20C147E940F2D70DA3F74C9A17DF361706A4485C742BD6788478FA17D7
    chfast = "0x2243525c5efd4b9c3d3c45ac0ca3fe4dd85e830a4ce6b65fa1eeaee202839703301d1d33be6da8e509df21cc35964723180eed7532537db9ae5e7d48f195c915"
    work = {"kind": "curve", "curve": "bn254-g1"}
    assert service.compute({**work, "function": "add", "points": [hex_(a)], "others": [hex_(b)]}).json["data"] == [chfast]
    rng = random.Random(5)
    generator = 1, 2
    scalars = [0, 1, 2, R - 1, *(rng.randrange(R) for _ in range(12))]
    points = [multiply(generator, scalar) for scalar in scalars]
    answer = service.compute({**work, "function": "multiply", "points": [hex_(generator)] * 16, "scalars": list(map(str, scalars))}).json
    assert answer["data"] == list(map(hex_, points)) and answer["dtype"] == "bn254-g1" and answer["shape"] == [16]
    together = "".join(hex_(point)[2:] for point in points)
    others = points[::-1][:14] + [points[14], (points[15][0], P - points[15][1])]
    for function, expected, more in [
        ("double", [add(point, point) for point in points], {}),
        ("neg", [(x, (-y) % P) for x, y in points], {}),
        # With infinity, a point and itself, a point and its opposite.
        ("add", list(map(add, points, others)), {"others": "".join(hex_(point)[2:] for point in others)}),
        ("encode", points, {}),
    ]:
        assert service.compute({**work, "function": function, "points": together, **more}).json["data"] == list(map(hex_, expected)), function
    off = hex_((1, 3))
    large = hex_((1 + P, 2))
    answer = service.compute({**work, "function": "check", "points": [hex_(generator), off, large, hex_((0, 0))]}).json
    assert answer["data"] == [True, False, False, True] and answer["dtype"] == "bool" and answer["device"] == "host"
    for change, pointer in [
        ({"points": [hex_(generator), off]}, "/points/1"), ({"points": hex_(generator) + off[2:]}, "/points"), ({"points": [large]}, "/points/0"),
        ({"points": [hex_(generator)[:-2]]}, "/points/0"), ({"points": "0x00"}, "/points"), ({"points": []}, "/points"), ({"points": "0x12x4"}, "/points"),
        ({"others": off}, "/others"), ({"function": "add"}, "/others"), ({"function": "add", "others": hex_(generator) * 2}, "/others"),
        ({"function": "add", "others": [off]}, "/others/0"), ({"scalars": [1]}, "/scalars"), ({"function": "multiply"}, "/scalars"),
        ({"function": "multiply", "scalars": [1, 2]}, "/scalars"), ({"function": "multiply", "scalars": [str(R)]}, "/scalars/0"),
        ({"function": "check", "answer": "eip"}, "/answer"), ({"function": "check", "points": ["00"]}, "/points/0"), ({"curve": "secp256k1"}, "/curve"),
    ]:
        refused(service, {**work, "function": "double", "points": hex_(generator), **change}, pointer)
    refused(service, {"kind": "msm", "curve": "bn254-g1", "points": [off], "scalars": [1]}, "/points/0")


def test_encodings(service):
    for curve, compressed in [("bls12381-g1", BLS_G1), ("bls12381-g2", BLS_G2)]:
        work = {"kind": "curve", "curve": curve, "function": "encode"}
        whole = service.compute({**work, "points": [compressed], "encoding": "compressed", "answer": "eip"}).json["data"]
        assert service.compute({**work, "points": whole, "answer": "compressed"}).json["data"] == ["0x" + compressed]
        assert service.compute({**work, "points": [compressed], "encoding": "compressed"}).json["data"] == ["0x" + compressed]
        # Flags of no form.
        refused(service, {**work, "points": ["1" + compressed[1:]], "encoding": "compressed"}, "/points/0")
    # x = 1 is no point's: 5 has no root.
    work = {"kind": "curve", "curve": "bls12381-g1", "function": "encode", "encoding": "compressed"}
    assert pow(5, (BLS - 1) // 2, BLS) == BLS - 1
    refused(service, {**work, "points": [BLS_G1, f"80{1:094x}"]}, "/points/1")
    # gnark writes the generator's y, 2, as the smaller root.
    work = {"kind": "curve", "curve": "bn254-g1", "function": "encode", "answer": "compressed"}
    assert service.compute({**work, "points": [hex_((1, 2)), hex_((1, P - 2)), hex_((0, 0))]}).json["data"] == [
        "0x8" + f"{1:063x}", "0xc" + f"{1:063x}", "0x4" + f"{0:063x}",
    ]


def test_the_group_of_prime_order(service):
    """A point of BLS12-381's first curve that is not in its group: refused by functions, told by check. (x = 4 is the first such.)"""
    y = pow(4**3 + 4, (BLS + 1) // 4, BLS)
    assert y * y % BLS == 4**3 + 4
    point = f"{4:0128x}{y:0128x}"
    work = {"kind": "curve", "curve": "bls12381-g1", "points": [point]}
    assert service.compute({**work, "function": "check"}).json["data"] == [False]
    answer = service.compute({**work, "function": "double"})
    assert answer.status == 422 and answer.json["pointer"] == "/points/0" and "group" in answer.json["detail"]


# Modulus, degree, and the power of the root that is adjoined.
EXTENSIONS = {
    "bn254-fq2": ("bn254-fq", P, 2, -1),
    "bls12381-fq2": ("bls12381-fq", BLS, 2, -1),
    "babybear4": ("babybear", 2013265921, 4, 11),
    "koalabear4": ("koalabear", 2130706433, 4, 3),
    "goldilocks2": ("goldilocks", 2**64 - 2**32 + 1, 2, 7),
    "mersenne31-complex": ("mersenne31", 2**31 - 1, 2, -1),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extensions(service, name):
    base, p, degree, root = EXTENSIONS[name]
    rng = random.Random(name)
    a, b = ([[rng.randrange(p) for _ in range(degree)] for _ in range(9)] for _ in range(2))
    a[0] = [p - 1] * degree

    def mul(x, y):
        out = [0] * (2 * degree)
        for i, u in enumerate(x):
            for j, v in enumerate(y):
                out[i + j] += u * v
        return [(out[i] + root * out[i + degree]) % p for i in range(degree)]

    def compute(function, *operands):
        names = dict(zip("ab", ([str(number) for element in operand for number in element] for operand in operands)))
        answer = service.compute({"kind": "extension", "extension": name, "function": function, **names})
        flat = numbers(answer)
        assert answer.json["dtype"] == base and answer.json["shape"] == [len(flat) // degree, degree] and answer.json["device"] == "host"
        return [flat[at : at + degree] for at in range(0, len(flat), degree)]

    total = lambda list_: [[sum(parts) % p for parts in zip(*list_)]]
    assert compute("add", a, b) == [[(u + v) % p for u, v in zip(x, y)] for x, y in zip(a, b)]
    assert compute("sub", a, b) == [[(u - v) % p for u, v in zip(x, y)] for x, y in zip(a, b)]
    assert compute("mul", a, b) == list(map(mul, a, b))
    assert compute("dot", a, b) == total(list(map(mul, a, b)))
    assert compute("neg", a) == [[-u % p for u in x] for x in a]
    assert compute("square", a) == [mul(x, x) for x in a]
    assert compute("sum", a) == total(a)
    zero = [[0] * degree]
    inverses = compute("inverse", a + zero)
    assert [mul(x, y) for x, y in zip(a, inverses)] == [[1] + [0] * (degree - 1)] * 9 and inverses[-1] == zero[0]
    work = {"kind": "extension", "extension": name, "function": "add", "a": [1] * degree, "b": [1] * degree}
    refused(service, {**work, "a": [1] * (degree + 1), "b": [1] * (degree + 1)}, "/a")
    refused(service, {**work, "b": [1]}, "/b")
    refused(service, {**work, "b": [1] * (degree - 1) + [str(p)]}, f"/b/{degree - 1}")


def test_examples_of_the_description(service):
    """Every example of the page works."""
    paths = service.ask("GET", "/openapi.json").json["paths"]
    for path in ("/v1/compute", "/v1/jobs"):
        examples = paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"]
        assert len(examples) >= 10
        for name, example in examples.items():
            assert service.compute(example["value"]).status == 200, name
