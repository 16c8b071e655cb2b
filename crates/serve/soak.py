#!/usr/bin/env python3
"""An hour of attacks on the service, beside a neighbour who only wants its answers.

    CANTUS_SERVE="target/debug/cantus serve" crates/serve/soak.py --minutes 60

The first half: each attack in turn, with a pause before it. The neighbour's latencies in the attack are held against those in the pauses: p99 at most
five times as long, or 50 ms. The service's memory is read in the pauses: it does not grow. The second half: the same attacks while the process is
killed 20 times and stopped and started with other settings 5 times. Every job that was accepted ends with its right result.

Attackers, the neighbour and the jobs' clients are processes of their own, so that none waits for another's interpreter. Nothing but Python is needed.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ATTACKERS = 4
ADD = {"kind": "field", "field": "bn254-fr", "function": "add", "a": [1, "2"], "b": ["0x10", 5]}
# 30 KB: more than is read at once, and more elements than small work has.
SUM = {"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1.25] * 5000}}, "expression": ["sum", "x"]}
MODULUS = 21888242871839275222246405745257275088548364400416034343698204186575808495617
G2 = bytes.fromhex(
    "00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    "0000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "000000000000000000000000000000000ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"
    "000000000000000000000000000000000606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be"
)
ENDLESS = {
    "kind": "kernel",
    "wgsl": "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
    "@compute @workgroup_size(1) fn main() { loop { if (y[0] == 77u) { break; } y[1] = y[1] + 1u; } }",
    "workgroups": [1],
    "zeros": {"y": {"dtype": "u32", "shape": [4]}},
    "output": "y",
}
PICTURE = {"kind": "picture", "picture": "field", "width": 4096, "height": 4096}
JSON = "application/json"
# What the service is stopped and started with, in turn.
SETTINGS = [["--workers", "1"], ["--memory", "512MiB"], ["--no-kernels"], ["--batch-size", "1", "--workers", "8"], []]


class World:
    """The state that all processes share, and their requests."""

    def __init__(self, folder, port, keys):
        self.folder, self.port, self.keys = folder, port, keys
        self.phase = multiprocessing.Array("c", 64)
        self.over = multiprocessing.Event()

    def name(self):
        return self.phase.value.decode()

    def set(self, name):
        self.phase.value = name.encode()

    def wait(self, seconds):
        until = time.time() + seconds
        while not self.over.is_set() and time.time() < until:
            time.sleep(min(0.2, max(0.0, until - time.time())))

    def ask(self, key, method, path, body=None, kind=JSON, accept=None, more=None, connection=None, timeout=30):
        own = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {self.keys[key]}", **({"Content-Type": kind} if body else {}), **({"Accept": accept} if accept else {}), **(more or {})}
        own.request(method, path, body=body, headers=headers)
        answer = own.getresponse()
        content = answer.read()
        if connection is None:
            own.close()
        return answer.status, content

    def send(self, key, body, kind, path="/v1/compute", source="127.0.0.1"):
        """A request whose answer is left to the caller."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60, source_address=(source, 0))
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nAuthorization: Bearer {self.keys[key]}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        return connection

    def read(self, connection, name, most=1 << 15):
        """Some of an answer; nothing at its end, or when the attack is over."""
        connection.settimeout(0.5)
        while self.name() == name:
            try:
                return connection.recv(most)
            except TimeoutError:
                continue
        return b""


def header(text):
    return len(text).to_bytes(8, "little") + text


def points(count):
    head = {"request": {"kind": "curve", "curve": "bls12381-g2", "function": "neg"}, "arrays": [{"name": "points", "dtype": "u8", "shape": [count * 256]}]}
    return json.dumps(head).encode() + b"\n" + G2 * count


def attack_points(world, key):
    """A MiB of points each, and half of the clients go away."""
    body = points(4096)
    while world.name() == "points":
        connection = world.send(key, body, "application/octet-stream")
        if random.random() < 0.5:
            world.wait(1)
        else:
            world.read(connection, "points")
        connection.close()


def attack_json(world, key):
    """JSON as large as is taken, of numbers and of names."""
    numbers = b'{"kind": "expression", "inputs": {"x": {"dtype": "u8", "data": [' + b"1," * 3_900_000 + b'1]}}, "expression": ["max", "x"]}'
    pairs = b'{"__metadata__":{"request":"{}",' + b",".join(b'"%x":""' % number for number in range(600_000)) + b"}}"
    while world.name() == "json":
        world.ask(key, "POST", "/v1/compute", numbers)
        world.ask(key, "POST", "/v1/compute", header(pairs), "application/vnd.safetensors")


def attack_answers(world, key):
    """64 MiB as JSON, read as slowly as is allowed."""
    body = json.dumps(PICTURE).encode()
    while world.name() == "answers":
        connection = world.send(key, body, JSON)
        until = time.time() + 20
        while time.time() < until and world.read(connection, "answers"):
            time.sleep(0.1)
        connection.close()


def attack_readers(world, key):
    """Many read one job's result at once."""
    job = json.loads(world.ask(key, "POST", "/v1/jobs", json.dumps(PICTURE).encode())[1])["id"]
    while world.name() == "readers" and json.loads(world.ask(key, "GET", f"/v1/jobs/{job}")[1])["state"] != "done":
        time.sleep(0.2)
    head = f"GET /v1/jobs/{job}/result HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {world.keys[key]}\r\n\r\n".encode()
    connections = []
    for _ in range(16):
        connections.append(socket.create_connection(("127.0.0.1", world.port), timeout=60))
        connections[-1].sendall(head)
    while world.name() == "readers":
        for connection in connections:
            world.read(connection, "readers", 1 << 14)
        time.sleep(0.2)
    for connection in connections:
        connection.close()
    world.ask(key, "DELETE", f"/v1/jobs/{job}")


def attack_kernels(world, key):
    """Kernels without an end."""
    body = json.dumps(ENDLESS).encode()
    while world.name() == "kernels":
        world.ask(key, "POST", "/v1/compute", body)


def attack_connections(world, key):
    """As many connections from one address as it may have."""
    source, held = f"127.0.0.{random.randrange(2, 250)}", []
    while world.name() == "connections":
        try:
            held.append(socket.create_connection(("127.0.0.1", world.port), timeout=2, source_address=(source, 0)))
        except OSError:
            time.sleep(0.05)
        if len(held) > 900:
            held.pop(0).close()
            time.sleep(0.01)
    for connection in held:
        connection.close()


def attack_files(world, key):
    """One stands for all: the keys' file is a pipe that nobody writes, and there again."""
    file = world.folder / "data" / "keys.toml"
    if key != "attacker 0":
        return world.wait(1)
    text = file.read_bytes()
    while world.name() == "files":
        file.unlink()
        os.mkfifo(file)
        world.wait(2)
        file.unlink()
        file.write_bytes(text)
        file.chmod(0o600)
        world.wait(2)


ATTACKS = {name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")}


def attacker(world, key):
    while not world.over.is_set():
        attack = ATTACKS.get(world.name())
        try:
            if attack:
                attack(world, key)
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            time.sleep(0.05)  # killed, restarted, or refused
        time.sleep(0.05)


def neighbour(world, path):
    """Small additions and 30 KB of numbers by turns; a line for each: the phase, the kind, milliseconds."""
    works = {name: json.dumps(work).encode() for name, work in (("add", ADD), ("sum", SUM))}
    with open(path, "w", buffering=1) as lines:
        connection = None
        while not world.over.is_set():
            for name, body in works.items():
                phase, begun = world.name(), time.perf_counter()
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", world.port, timeout=60)
                    status, _ = world.ask("neighbour", "POST", "/v1/compute", body, connection=connection)
                    time_taken = 1e3 * (time.perf_counter() - begun)
                    if phase == world.name():
                        print(phase, name, f"{time_taken:.3f}" if status == 200 else f"!{status}", file=lines)
                except (OSError, http.client.HTTPException) as error:
                    connection = None
                    print(phase, name, f"!{type(error).__name__}", file=lines)
                    time.sleep(0.05)
                time.sleep(0.02)


def submitter(world, number, path):
    """Jobs with known results. A line for each that was accepted."""
    chance = random.Random(number)
    with open(path, "w", buffering=1) as lines:
        count = 0
        while not world.over.is_set():
            count += 1
            x, y = chance.randrange(MODULUS), chance.randrange(MODULUS)
            work = {"kind": "field", "field": "bn254-fr", "function": "mul", "a": [str(x)], "b": [str(y)]}
            more = {"Idempotency-Key": f"{number}-{count}"}
            while not world.over.is_set():
                try:
                    status, content = world.ask(f"client {number}", "POST", "/v1/jobs", json.dumps(work).encode(), more=more)
                    if status == 202:
                        print(json.loads(content)["id"], f"0x{x * y % MODULUS:064x}", file=lines)
                        break
                except (OSError, http.client.HTTPException):
                    pass
                time.sleep(0.1)
            world.wait(0.15)


class Service:
    def __init__(self, program, folder, port):
        self.program, self.folder, self.port, self.more, self.process = program, folder, port, [], None

    def start(self):
        kernels = [] if "--no-kernels" in self.more else ["--kernels"]
        more = [word for word in self.more if word != "--no-kernels"]
        arguments = ["--listen", f"127.0.0.1:{self.port}", "--data", str(self.folder / "data"), *kernels, *more]
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([*self.program, *arguments], stdout=self.log, stderr=self.log)
        # After a kill the database is checked as a whole.
        until = time.time() + 300
        while time.time() < until:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                    connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    if b" 200 " in connection.recv(64):
                        return
            except OSError:
                pass
            if self.process.poll() is not None:
                raise SystemExit(f"it ended with {self.process.returncode}: {(self.folder / 'log').read_text()[-800:]}")
            time.sleep(0.02)
        raise SystemExit(f"it does not answer: {(self.folder / 'log').read_text()[-800:]}")

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(60)

    def memory(self, name="VmRSS"):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024


def at(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def attacks_by_turns(world, service, seconds, say):
    """The first half. The service's memory in each pause."""
    memory, rounds = [], max(1, round(seconds / (3 * PAUSE * len(ATTACKS))))
    for _ in range(rounds):
        for name in ATTACKS:
            world.set("pause")
            time.sleep(PAUSE)
            memory.append(service.memory())
            world.set(name)
            time.sleep(seconds / rounds / len(ATTACKS) - PAUSE)
            if service.process.poll() is not None:
                raise SystemExit(f"{name} ended the service with {service.process.returncode}")
            say(f"{name}: {service.memory():.0f} MiB, at most {service.memory('VmHWM'):.0f}")
    world.set("pause")
    time.sleep(PAUSE)
    memory.append(service.memory())
    return memory


def kills_and_restarts(world, service, seconds, say):
    """The second half."""
    events = ["kill"] * 20 + ["restart"] * 5
    random.Random(1).shuffle(events)
    # A service does not start on keys that are a pipe.
    down, settings, names = [], iter(SETTINGS), [name for name in ATTACKS if name != "files"] or ["pause"]
    for number, event in enumerate(events):
        # Beside, under another name: these latencies are those of a process that ends.
        world.set(names[number % len(names)])
        time.sleep(max(1.0, seconds / len(events) * random.uniform(0.5, 1.2)))
        if event == "kill":
            service.end(signal.SIGKILL)
        else:
            service.more = next(settings)
            code = service.end(signal.SIGTERM)
            if code != 0:
                raise SystemExit(f"SIGTERM: it ended with {code}")
        begun = time.time()
        service.start()
        down.append(time.time() - begun)
    say(f"20 kills, 5 restarts; a start took {statistics.median(down):.2f} s, at most {max(down):.2f}")


def compared(lines, memory, growth):
    """Prints the neighbour's latencies and the service's memory. Returns whether one misses its goal."""
    found, failed = {}, False
    for line in lines:
        phase, kind, value = line.split()
        found.setdefault((phase, kind), []).append(value)
    print("| phase | the neighbour's | answers | refused | p50 | p99 | goal |\n| --- | --- | --- | --- | --- | --- | --- |")
    own = {kind: at([float(value) for value in found.get(("pause", kind), []) if value[0] != "!"], 0.99) for kind in ("add", "sum")}
    for (phase, kind), values in sorted(found.items(), key=lambda item: (item[0][0] != "pause", item[0])):
        right = [float(value) for value in values if value[0] != "!"]
        goal = max(5 * own[kind], 50.0)
        missed = phase != "pause" and (len(right) < len(values) or at(right, 0.99) > goal)
        failed |= missed
        goal = "" if phase == "pause" else f"{goal:.0f} ms{', missed' if missed else ''}"
        print(f"| {phase} | {kind} | {len(right)} | {len(values) - len(right)} | {at(right, 0.5):.1f} ms | {at(right, 0.99):.1f} ms | {goal} |")
    # The first pause is before anything is warm.
    third = max(1, (len(memory) - 1) // 3)
    first, last = statistics.median(memory[1 : 1 + third]), statistics.median(memory[-third:])
    print(f"memory in the pauses: {first:.0f} MiB in the first third, {last:.0f} in the last; {[round(each) for each in memory]}", flush=True)
    return failed or last - first > growth


def verify(world, files):
    """How many jobs were accepted, and what is wrong with any."""
    accepted, wrong = 0, []
    for number, file in enumerate(files):
        connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=60)
        for line in file.read_text().splitlines():
            job, expected = line.split()
            accepted += 1
            until, state = time.time() + 300, None
            while state not in ("done", "failed", "cancelled"):
                status, content = world.ask(f"client {number}", "GET", f"/v1/jobs/{job}", connection=connection)
                state = json.loads(content).get("state") if status == 200 else f"answer {status}"
                if status != 200 or time.time() > until:
                    break
                time.sleep(0 if state == "done" else 0.1)
            status, content = world.ask(f"client {number}", "GET", f"/v1/jobs/{job}/result", connection=connection)
            if state != "done" or status != 200 or json.loads(content)["data"] != [expected]:
                wrong.append((job, state, status, content[:100]))
    return accepted, wrong


PAUSE = 15.0


def main():
    global PAUSE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long [60]")
    parser.add_argument("--program", default=os.environ.get("CANTUS_SERVE", "target/debug/cantus-serve"), help="as cantus-serve, or 'cantus serve'")
    parser.add_argument("--growth", type=float, default=64.0, help="MiB by which the service's memory may grow from its first third to its last [64]")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help="some of them, separated by commas [all]")
    given = parser.parse_args()
    chosen = given.attacks.split(",")
    if unknown := [name for name in chosen if name not in ATTACKS]:
        parser.error(f"there is no attack {', '.join(unknown)}: {', '.join(ATTACKS)}")
    for name in [name for name in ATTACKS if name not in chosen]:
        del ATTACKS[name]
    PAUSE = min(PAUSE, given.minutes * 60 / 80)
    program = given.program.split()
    program[0] = str(pathlib.Path(program[0]).resolve())
    with tempfile.TemporaryDirectory() as place, socket.socket() as probe:
        folder = pathlib.Path(place)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        names = [*(f"attacker {number}" for number in range(ATTACKERS)), "neighbour", "client 0", "client 1"]
        keys = {}
        for name in names:
            add = [*program, "keys", "add", "--name", name, "--scope", "operations", "--scope", "kernels", "--keys", str(folder / "data" / "keys.toml")]
            keys[name] = subprocess.run(add, capture_output=True, text=True, check=True).stdout.strip()
        (folder / "data").chmod(0o700)
        begun = time.time()
        say = lambda text: print(f"{(time.time() - begun) / 60:5.1f} min  {text}", flush=True)
        world, service = World(folder, port, keys), Service(program, folder, port)
        world.set("pause")
        service.start()
        latencies, files = folder / "latencies", [folder / f"jobs {number}" for number in range(2)]
        processes = [multiprocessing.Process(target=neighbour, args=(world, latencies))]
        processes += [multiprocessing.Process(target=attacker, args=(world, f"attacker {number}")) for number in range(ATTACKERS)]
        processes += [multiprocessing.Process(target=submitter, args=(world, number, file)) for number, file in enumerate(files)]
        for process in processes:
            process.start()
        try:
            memory = attacks_by_turns(world, service, given.minutes * 30, say)
            missed = compared(latencies.read_text().splitlines(), memory, given.growth)
            kills_and_restarts(world, service, given.minutes * 30, say)
            world.set("pause")
            service.end(signal.SIGTERM)
            service.more = []
            service.start()
            world.over.set()
            for process in processes:
                process.join(150)
            accepted, wrong = verify(world, files)
        finally:
            world.over.set()
            for process in processes:
                process.kill()
            if service.process.poll() is None:
                service.end(signal.SIGTERM)
        print(f"jobs: {accepted} accepted, {len(wrong)} lost or wrong {wrong[:3]}")
        return int(missed or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
