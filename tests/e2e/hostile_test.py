"""Clients that mean no good. Whatever they do, others are served and nothing is left behind.

Run: hostile_test.py <apps dir>. TIDEPOOL_TEST_SEED repeats a run of the random tests.
"""
import concurrent.futures
import os
import random
import resource
import select
import time
import unittest

import lib
from lib import Node, chunked, make_request, poll, value_body, value_body_of

MIB = 1024 * 1024
SEED = int(os.environ.get("TIDEPOOL_TEST_SEED") or random.SystemRandom().randrange(2**32))
CROWD = 10_000


def raise_file_limit():
    """For us and, inherited, for the node. Returns what we got."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def in_parallel(work, count):
    """The results of work(0) .. work(count - 1)."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(work, range(count)))


def ended(client):
    """Has the node closed this connection? Does not wait; throws away what came."""
    client.sock.setblocking(False)
    try:
        while client.sock.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        client.sock.settimeout(lib.PATIENCE_S)


class HostileTest(unittest.TestCase):
    """All tests of a class share a node; at its end the node must be as it was before them."""
    config = {}

    @classmethod
    def setUpClass(cls):
        raise_file_limit()
        cls.node = Node({"echo.value_max_bytes": MIB, **cls.config})
        try:
            cls.warm_up()
            cls.memory_before = cls.node.core_sum("memory_used_bytes")
        except BaseException:
            cls.node.discard()
            raise

    @classmethod
    def tearDownClass(cls):
        try:
            cls.check_nothing_is_left()
            code = cls.node.stop()
            if code != 0:
                raise AssertionError(f"exit code {code}:\n{cls.node.log()[-4000:]}")
        finally:
            cls.node.discard()

    @classmethod
    def warm_up(cls):
        """Lets buffers that are kept for reuse grow, on both cores."""
        clients = [cls.node.client() for _ in range(100)]
        for number, client in enumerate(clients):
            body = value_body_of(MIB if number < 8 else 1000)
            client.request("PUT", "/v1/echo/warm", body)
            client.request("GET", "/v1/echo/warm")
            client.close()
        with cls.node.client() as client:
            client.request("DELETE", "/v1/echo/warm")
        cls.node.ops_get("/metrics")
        cls.wait_for_empty()

    @classmethod
    def wait_for_empty(cls):
        poll(lambda: cls.node.core_sum("connections") == 0, "no connections are left")
        poll(lambda: cls.node.core_sum("inflight") == 0, "nothing is in flight")

    @classmethod
    def check_nothing_is_left(cls):
        if not cls.node.alive():
            raise AssertionError(f"the node died:\n{cls.node.log()[-4000:]}")
        cls.wait_for_empty()
        limit = cls.memory_before + 8 * MIB
        poll(lambda: cls.node.core_sum("memory_used_bytes") <= limit, "memory comes back", 20)

    def setUp(self):
        if not self.node.alive():
            self.skipTest("the node died in an earlier test")

    def tearDown(self):
        self.assertTrue(self.node.alive(), self.node.log()[-4000:])
        self.check_health()

    def check_health(self):
        self.assertEqual(self.node.get("/healthz").json(), {"alive": True})

    def open(self, count, **options):
        clients = [self.node.client(**options) for _ in range(count)]
        for client in clients:
            self.addCleanup(client.close)
        return clients

    def timeouts(self, op):
        return self.node.metric("io_timeouts_total", op=op)

    def put_status(self, data, headers):
        """Of a PUT on a connection of its own, which may be refused before it is all sent."""
        with self.node.client() as client:
            client.try_send(make_request("PUT", "/v1/echo/hostile", data, headers))
            return client.response().status


class SlowClientsTest(HostileTest):
    config = {"http.read_timeout_ms": 500, "http.idle_timeout_ms": 1000,
              "http.write_timeout_ms": 500}

    def drip(self, clients, byte, patience_s=25):
        """A byte to everyone who is still there, again and again, until nobody is."""
        end = time.monotonic() + patience_s
        while clients and time.monotonic() < end:
            clients = [client for client in clients if client.try_send(byte) and not ended(client)]
            self.check_health()
            time.sleep(0.05)  # many bytes within one read timeout: a byte must not renew it
        return len(clients)

    def test_slow_heads(self):
        before = self.timeouts("read")
        clients = self.open(200)
        for client in clients:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\nX-Slow: ")
        self.assertEqual(self.drip(clients, b"x"), 0, "still connected")
        self.assertGreaterEqual(self.timeouts("read") - before, 200)

    def test_slow_bodies(self):
        before = self.timeouts("read")
        clients = self.open(100)
        for client in clients[:50]:
            client.send(make_request("PUT", "/v1/echo/slow", headers={"Content-Length": 10_000}))
        for client in clients[50:]:
            client.send(make_request("PUT", "/v1/echo/slow",
                                     headers={"Transfer-Encoding": "chunked"}) + b"9000\r\n")
        self.assertEqual(self.drip(clients, b"x"), 0, "still connected")
        self.assertGreaterEqual(self.timeouts("read") - before, 100)

    def test_slow_second_head(self):
        clients = self.open(20)
        for client in clients:
            self.assertEqual(client.request("GET", "/healthz").status, 200)
            client.send(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        self.assertEqual(self.drip(clients, b"x"), 0, "still connected")

    def test_silent_connections(self):
        before = self.timeouts("idle")
        clients = self.open(100)
        for client in clients:
            self.assertTrue(client.closed_by_peer())
        self.assertGreaterEqual(self.timeouts("idle") - before, 100)

    def ask_and_never_read(self, clients, value_bytes):
        """Each asks for far more than the kernel's buffers hold, in one go."""
        with self.node.client() as client:
            client.request("PUT", "/v1/echo/large", value_body_of(value_bytes))
        for client in self.open(clients, receive_buffer=4096):
            client.try_send(make_request("GET", "/v1/echo/large") * 64)
        poll(lambda: self.node.core_sum("connections") == 0, "all are disconnected", 150)
        with self.node.client() as client:
            client.request("DELETE", "/v1/echo/large")

    def test_never_reading(self):
        before = self.timeouts("write")
        self.ask_and_never_read(8, MIB // 4)
        self.assertGreaterEqual(self.timeouts("write") - before, 8)

    def test_never_reading_does_not_exhaust_memory(self):
        # 1 GiB if every answer were held ready for its reader: more than the node has.
        self.ask_and_never_read(16, MIB)
        self.assertFalse("bad_alloc" in self.node.log(), "the node ran out of memory")

    def test_leaving_in_the_middle(self):
        pieces = (b"GET /v1/ec", make_request("PUT", "/v1/echo/k", b"{", {"Content-Length": 99}),
                  make_request("GET", "/v1/echo/k") * 50, make_request("GET", "/v1/echo-events"),
                  make_request("GET", "/v1/echo/k") * 9 + make_request("GET", "/v1/echo-events"))
        for piece in pieces * 10:
            client = self.node.client()
            client.send(piece)
            client.reset()
        poll(lambda: self.node.core_sum("connections") == 0, "all are gone")


class BadBytesTest(HostileTest):
    config = {"admission.memory_max_bytes": 8 * MIB, "http.read_timeout_ms": 2000}

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)

    def test_too_long_bodies(self):
        body = lib.noise_body_of(MIB + 1)
        frames = [(body, {}), (chunked(body), {"Transfer-Encoding": "chunked"})]
        statuses = in_parallel(lambda i: self.put_status(*frames[i % 2]), 48)
        self.assertLessEqual(set(statuses), {413, 429})
        self.assertIn(413, statuses)

    def test_gzip_bombs(self):
        bombs = [lib.gzip_bomb(size) for size in (300_000, 30_000_000)]
        packed = {"Content-Encoding": "gzip"}
        statuses = in_parallel(lambda i: self.put_status(bombs[i % 2], packed), 100)
        self.assertLessEqual(set(statuses), {413, 429})
        self.assertIn(413, statuses)

    def test_pipelined_garbage(self):
        gets = make_request("GET", "/healthz") * 10
        for garbage in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"\n\n\n\n", b"\xff" * 3000,
                        b"GET / HTTP/2.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            with self.subTest(garbage=garbage[:20]), self.node.client() as client:
                client.send(gets + garbage + make_request("PUT", "/v1/echo/no", value_body("x")))
                for _ in range(10):
                    self.assertEqual(client.response().status, 200)
                self.assertEqual(client.response().status, 400)
                self.assertTrue(client.closed_by_peer())
            self.assertEqual(self.node.get("/v1/echo/no").status, 404)

    def test_random_bytes(self):
        print(f"TIDEPOOL_TEST_SEED={SEED}", flush=True)
        for _ in range(150):
            self.check_answers_are_http(self.random.randbytes(self.random.randrange(1, 5000)))

    def test_damaged_requests(self):
        print(f"TIDEPOOL_TEST_SEED={SEED}", flush=True)
        good = (make_request("PUT", "/v1/echo/damaged", chunked(value_body("value"), 3),
                             {"Transfer-Encoding": "chunked"})
                + make_request("GET", "/v1/echo/damaged")
                + make_request("PUT", "/v1/echo/damaged", value_body("other")))
        for _ in range(300):
            data = bytearray(good)
            for _ in range(self.random.randrange(1, 4)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
            self.check_answers_are_http(bytes(data))

    def check_answers_are_http(self, data):
        with self.node.client() as client:
            client.try_send(data)
            try:
                client.sock.shutdown(1)
            except OSError:
                pass  # already refused and gone
            said = client.rest()
        self.assertTrue(said == b"" or said.startswith(b"HTTP/1.1 "), (data, said))

    def test_huge_chunks(self):
        for size in (b"ffffffffffffffff", b"7fffffffffffffff", b"8000000000000000", b"100001",
                     b"fffffffffffffffff", b"0" * 5000 + b"1"):
            with self.subTest(size=size[:20]):
                status = self.put_status(size + b"\r\nabc\r\n", {"Transfer-Encoding": "chunked"})
                self.assertIn(status, (400, 413))

    def test_many_tiny_chunks(self):
        body = chunked(value_body("v" * 50_000), 1)
        self.assertIn(self.put_status(body, {"Transfer-Encoding": "chunked"}), (200, 201))

    def test_announced_bodies(self):
        before = self.node.metric("quota_reject_total", kind="memory")
        clients = self.open(60)
        for client in clients:
            client.send(make_request("PUT", "/v1/echo/k", headers={"Content-Length": MIB}))
        said = [client.rest() for client in clients]
        refused = [text for text in said if text.startswith(b"HTTP/1.1 429 ")]
        self.assertTrue(refused)
        self.assertTrue(all(b"Retry-After: " in text for text in refused))
        self.assertTrue(all(text == b"" or text in refused for text in said))
        counted = self.node.metric("quota_reject_total", kind="memory") - before
        self.assertEqual(counted, len(refused))
        self.assertIn(self.put_status(value_body_of(MIB), {}), (200, 201))
        with self.node.client() as client:
            client.request("DELETE", "/v1/echo/hostile")


class CrowdTest(HostileTest):
    """One address that wants everything. Timeouts are long: only quotas protect."""
    limit = 256

    def test_crowd_from_one_address(self):
        count = min(CROWD, raise_file_limit() - 500)
        if count < CROWD:
            print(f"the limit of open files allows {count} connections, not {CROWD}", flush=True)
        before = self.node.metric("quota_reject_total", kind="connections_per_ip")
        clients = {client.sock.fileno(): client for client in self.open(count)}
        left = self.drop_the_refused(clients)
        self.assertEqual(len(left), self.limit)
        self.assertEqual(self.node.core_sum("connections"), self.limit)
        counted = self.node.metric("quota_reject_total", kind="connections_per_ip") - before
        self.assertEqual(counted, count - self.limit)
        for client in left:
            self.assertEqual(client.request("GET", "/healthz").status, 200)
            client.close()
        poll(lambda: self.node.core_sum("connections") == 0, "all are gone")
        for client in self.open(100):
            self.assertEqual(client.request("GET", "/healthz").status, 200)
            client.close()

    def drop_the_refused(self, clients):
        """Waits until only the accepted are open, and returns those."""
        waiting = select.epoll()
        for number in clients:
            waiting.register(number, select.EPOLLIN)
        end = time.monotonic() + lib.PATIENCE_S
        while len(clients) > self.limit and time.monotonic() < end:
            for number, _ in waiting.poll(1, 1000):
                waiting.unregister(number)
                self.check_refusal(clients.pop(number))
        waiting.close()
        return list(clients.values())

    def check_refusal(self, client):
        """A 429, or just closed when there are too many of them."""
        said = client.rest()
        client.close()
        self.assertTrue(said == b"" or said.startswith(b"HTTP/1.1 429 "), said)

    def test_idle_connections_keep_no_bodies(self):
        # What a body took is given back with the answer, not when the connection ends.
        clients = self.open(200)
        body = value_body_of(MIB)
        for client in clients:
            self.assertIn(client.request("PUT", "/v1/echo/kept", body).status, (200, 201))
        clients[0].request("DELETE", "/v1/echo/kept")
        limit = self.memory_before + 32 * MIB
        poll(lambda: self.node.core_sum("memory_used_bytes") <= limit,
             "idle connections hold no memory", 20)
        for client in clients:
            client.close()
        self.wait_for_empty()


if __name__ == "__main__":
    lib.run_tests()
