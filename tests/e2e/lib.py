"""A tidepool process under test, and sockets that see exactly what it sends.

Nothing here asserts how long something took: waits end with a generous deadline, because the same
tests run under sanitizers, on slow machines.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
LOOPBACK = "127.0.0.1"
_apps = ROOT / "build/release/apps"


def run_tests():
    """`X_test.py <apps dir> [unittest arguments]`; does not return."""
    global _apps
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} <apps dir> [unittest arguments]")
    _apps = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)


def node_program():
    return str(_apps / "node/tidepool")


def ctl(*args, stdin="", env=None):
    """Runs tidepoolctl to its end."""
    command = [str(_apps / "ctl/tidepoolctl"), *args]
    return subprocess.run(command, input=stdin, env=env, capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)


def poll(condition, what, patience_s=PATIENCE_S):
    """Waits until condition() is true, and returns what it returned."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience_s:.0f} s in vain: {what}")
        time.sleep(0.03)


def free_ports(count):
    """Ports nobody listens on. All are held while they are chosen, so that they differ."""
    held = []
    for _ in range(count):
        sock = socket.socket()
        sock.bind((LOOPBACK, 0))
        held.append(sock)
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


def to_yaml(flat):
    """{"http.tls.enabled": True} as nested YAML, one key a line."""
    tree = {}
    for key, value in flat.items():
        *sections, last = key.split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {})
        at[last] = value
    return "\n".join(_yaml_lines(tree, "")) + "\n"


def _yaml_lines(tree, indent):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _yaml_lines(value, indent + "  ")
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield f"{indent}{key}: {text}"


@dataclass
class Response:
    status: int
    headers: dict  # names in lower case
    body: bytes

    def json(self):
        return json.loads(self.body)


class Client:
    """One connection. Reads exactly one response at a time; what follows stays for the next."""

    def __init__(self, port, receive_buffer=0, tls=None):
        sock = socket.socket()
        sock.settimeout(PATIENCE_S)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            sock.connect((LOOPBACK, port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = tls.wrap_socket(sock, server_hostname="localhost") if tls else sock
        except OSError:
            sock.close()
            raise
        self._received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST, as a client that crashed."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def try_send(self, data):
        """For bytes that the node may refuse to read to their end."""
        try:
            self.sock.sendall(data)
        except OSError:
            return False
        return True

    def _more(self):
        piece = self.sock.recv(65536)
        self._received += piece
        return bool(piece)

    def read_until(self, mark):
        while mark not in self._received:
            if not self._more():
                raise ConnectionError(f"closed before {mark!r}; got {self._received[:200]!r}")
        found, self._received = self._received.split(mark, 1)
        return found

    def read_exactly(self, size):
        while len(self._received) < size:
            if not self._more():
                raise ConnectionError(f"closed after {len(self._received)} of {size} bytes")
        found, self._received = self._received[:size], self._received[size:]
        return found

    def response(self, head_only=False):
        """The next response. Without Content-Length only its head is read: an event stream."""
        lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", lines[0])
        if not match:
            raise ConnectionError(f"no status line: {lines[0]!r}")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        size = 0 if head_only else int(headers.get("content-length", "0"))
        return Response(int(match[1]), headers, self.read_exactly(size))

    def request(self, method, path, body=None, headers=None):
        self.send(make_request(method, path, body, headers))
        return self.response(head_only=method == "HEAD")

    def rest(self):
        """Everything up to the end of the connection, a reset included."""
        try:
            while self._more():
                pass
        except ConnectionResetError:
            pass  # what came before the reset is what counts
        found, self._received = self._received, b""
        return found

    def closed_by_peer(self):
        """Waits for the end; true when nothing came before it."""
        return self.rest() == b""


def make_request(method, path, body=None, headers=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    given = {name.lower() for name in headers or {}}
    if body is not None and not given & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def value_body(value):
    return json.dumps({"value": value}).encode()


def value_body_of(size):
    """A JSON body of exactly this many bytes."""
    return value_body("x" * (size - len(value_body(""))))


def noise_body_of(size):
    """The same, of letters that pack badly, so that only the limit under test is met."""
    letters = os.urandom(size).hex()[: size - len(value_body(""))]
    return value_body(letters)


def chunked(body, piece=65536):
    out = b""
    for at in range(0, len(body), piece):
        part = body[at:at + piece]
        out += b"%x\r\n%s\r\n" % (len(part), part)
    return out + b"0\r\n\r\n"


def gzip_bomb(unpacked_bytes):
    return gzip.compress(b'{"value":"' + b"a" * unpacked_bytes + b'"}')


class Node:
    """A node on free ports with its own temporary folder. Use it as a context manager."""

    def __init__(self, config=None, env=None, sets=(), start=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidepool-e2e-"))
        self.http_port, self.ops_port = free_ports(2)
        self.config = {
            "reactor.cores": 2,
            "reactor.memory": "1G",
            "reactor.overprovisioned": True,
            "node.data_dir": self.folder / "data",
            "http.listen": f"{LOOPBACK}:{self.http_port}",
            "ops.listen": f"{LOOPBACK}:{self.ops_port}",
            **(config or {}),
        }
        self.config_file = self.folder / "node.yaml"
        self.log_file = self.folder / "log"
        self.process = None
        self._env = env or {}
        self._sets = sets
        self.write_config()
        if start:
            try:
                self.start()
            except BaseException:
                self.discard()  # __exit__ does not run for a node that never was
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.discard()

    def write_config(self, **changes):
        self.config.update({name.replace("__", "."): v for name, v in changes.items()})
        self.config_file.write_text(to_yaml(self.config))

    def launch(self):
        """Starts the process and does not wait."""
        command = [node_program(), "--config", str(self.config_file)]
        for item in self._sets:
            command += ["--set", item]
        env = {k: v for k, v in os.environ.items() if not k.startswith("TIDEPOOL_")}
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(command, env={**env, **self._env}, stderr=log,
                                            stdout=log, stdin=subprocess.DEVNULL)

    def start(self):
        self.launch()
        poll(self._ready_or_dead, "the node is ready")

    def _ready_or_dead(self):
        if self.process.poll() is not None:
            raise AssertionError(f"exit {self.process.returncode} at start:\n{self.log()}")
        try:
            return self.ops_get("/readyz").status == 200
        except OSError:
            return False

    def send_signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit code of a node that was asked to stop."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the node does not stop:\n{self.log()[-4000:]}") from None

    def stop(self, number=signal.SIGTERM):
        self.send_signal(number)
        return self.wait()

    def discard(self):
        """Whatever happened, no process and no file stays behind."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def alive(self):
        return self.process.poll() is None

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def complaints(self):
        """Lines of the log above INFO, without what Seastar says of the machine or the build."""
        usual = re.compile(r"INFO |WARNING: debug mode|.*compiled with default allocator"
                           r"|WARN .* seastar - Could not parse cgroups")
        return [line for line in self.log().splitlines() if not usual.match(line)]

    def wait_for_log(self, text, times=1):
        poll(lambda: self.log().count(text) >= times, f"{text!r} in the log")

    def client(self, **options):
        return Client(self.http_port, **options)

    def get(self, path, headers=None):
        with self.client() as client:
            return client.request("GET", path, headers=headers)

    def put(self, key, value, headers=None):
        with self.client() as client:
            return client.request("PUT", f"/v1/echo/{key}", value_body(value), headers)

    def ops_get(self, path):
        with Client(self.ops_port) as client:
            return client.request("GET", path)

    def status(self):
        return self.ops_get("/v1/status").json()

    def core_sum(self, name):
        return sum(core[name] for core in self.status()["cores"])

    def metric(self, name, **labels):
        """The sum over cores of the samples that have all these labels."""
        samples = parse_metrics(self.ops_get("/metrics").body.decode())
        return sum(value for sample, its, value in samples
                   if sample == name and labels.items() <= its.items())

    def rss(self):
        """Resident bytes of the process."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def reload(self):
        """SIGHUP, and waits until the node has said what became of it."""
        marks = ("configuration version", "configuration not changed", "keys not changed")

        def said():
            log = self.log()
            return sum(log.count(mark) for mark in marks)

        before = said()
        self.send_signal(signal.SIGHUP)
        poll(lambda: said() > before, "the node has read its configuration again")


def parse_metrics(text):
    """(name, labels, value) of every sample."""
    out = []
    for line in text.splitlines():
        match = re.fullmatch(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)', line)
        if match and not line.startswith("#"):
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            out.append((match[1], labels, float(match[3])))
    return out
