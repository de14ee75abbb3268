"""One node as its users see it: start, serve, reload, drain. Run: node_test.py <apps dir>"""
import gzip
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import unittest
import zlib

import lib
from lib import Client, Node, chunked, make_request, poll, value_body, value_body_of

MIB = 1024 * 1024
PROMISED_METRICS = (
    "queue_depth queue_dropped_total busy_rejections_total tasks_spawned_total "
    "tasks_aborted_total tasks_canceled_total io_timeouts_total backoff_retries_total "
    "bus_lagged_total quota_reject_total not_ready_total request_latency_seconds_bucket "
    "http_requests_total").split()


class SharedNode(unittest.TestCase):
    """Tests that leave the node as it was share one."""
    config = {}

    @classmethod
    def setUpClass(cls):
        cls.node = Node(cls.config)

    @classmethod
    def tearDownClass(cls):
        try:
            code = cls.node.stop() if cls.node.alive() else cls.node.process.returncode
            log = cls.node.log()
        finally:
            cls.node.discard()
        if code != 0:
            raise AssertionError(f"exit code {code}:\n{log[-4000:]}")

    def setUp(self):
        self.client = self.node.client()
        self.addCleanup(self.client.close)

    def assert_error(self, response, status, code, field=None):
        self.assertEqual(response.status, status, response.body)
        body = response.json()
        self.assertEqual(body["code"], code)
        self.assertIsInstance(body["message"], str)
        self.assertIsInstance(body["retryable"], bool)
        self.assertEqual(body["corr_id"], response.headers["x-corr-id"])
        if field:
            self.assertEqual(body["field"], field)


class ProbeTest(SharedNode):
    def test_health_on_both_listeners(self):
        for port in (self.node.http_port, self.node.ops_port):
            with Client(port) as client:
                response = client.request("GET", "/healthz")
            self.assertEqual((response.status, response.json()), (200, {"alive": True}))

    def test_ready_and_version(self):
        self.assertEqual(self.node.ops_get("/readyz").json(), {"ready": True, "phase": "ready"})
        version = self.node.ops_get("/version").json()
        self.assertEqual(version["name"], "tidepool")
        told = subprocess.run([lib.node_program(), "--version"], capture_output=True, text=True,
                              timeout=lib.PATIENCE_S, check=True)
        self.assertEqual(told.stdout.strip(), f"tidepool {version['version']}")

    def test_ops_routes_are_not_public(self):
        for path in ("/metrics", "/v1/status", "/readyz"):
            self.assertEqual(self.node.get(path).status, 404)

    def test_metrics_are_prometheus_text(self):
        response = self.node.ops_get("/metrics")
        self.assertTrue(response.headers["content-type"].startswith("text/plain; version=0.0.4"))
        text = response.body.decode()
        names = {name for name, _, _ in lib.parse_metrics(text)}
        for name in PROMISED_METRICS:
            self.assertIn(name, names)
            family = name.removesuffix("_bucket")
            self.assertRegex(text, rf"(?m)^# HELP {family} \S")
            self.assertRegex(text, rf"(?m)^# TYPE {family} (counter|gauge|histogram)$")
        for line in text.splitlines():
            self.assertTrue(line.startswith("# ") or lib.parse_metrics(line), line)

    def test_status_names_documented_queues(self):
        status = self.node.status()
        documented = (lib.ROOT / "docs/CONCURRENCY.md").read_text()
        self.assertTrue(status["queues"])
        for queue in status["queues"]:
            self.assertIn(f"`{queue['queue']}`", documented)
        self.assertEqual([core["core"] for core in status["cores"]], [0, 1])

    def test_ctl_shows_status(self):
        told = lib.ctl("status", "--json", "--ops", f"{lib.LOOPBACK}:{self.node.ops_port}")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(json.loads(told.stdout)["phase"], "ready")


class EchoTest(SharedNode):
    config = {"echo.value_max_bytes": MIB}

    def test_put_get_delete(self):
        path = "/v1/echo/life"
        self.assertEqual(self.client.request("PUT", path, value_body("one")).status, 201)
        self.assertEqual(self.client.request("PUT", path, value_body("zwei \u20ac")).status, 200)
        found = self.client.request("GET", path).json()
        self.assertEqual((found["key"], found["value"], found["version"]),
                         ("life", "zwei \u20ac", 2))
        self.assertEqual(self.client.request("DELETE", path).status, 200)
        self.assert_error(self.client.request("GET", path), 404, "not_found")
        self.assert_error(self.client.request("DELETE", path), 404, "not_found")

    def test_keys_are_decoded(self):
        self.client.request("PUT", "/v1/echo/a%2Fb%20c", value_body("v"))
        self.assertEqual(self.client.request("GET", "/v1/echo/a%2fb%20c").json()["key"], "a/b c")
        self.assert_error(self.client.request("GET", "/v1/echo/a%2"), 400, "bad_request", "path")
        self.assert_error(self.client.request("GET", "/v1/echo/" + "k" * 257), 400,
                          "bad_request", "key")

    def test_json_errors_name_the_field(self):
        wrong = {
            b'{"value":"a","extra":1}': "extra",
            b'{"value":"a","value":"b"}': "value",
            b'{"value":7}': "value",
            b'{}': "value",
            b'{"value":"a"} x': "body",
            b'["value"]': "body",
            b'{"value":': "body",
            b'{"value":"\xff"}': "body",
        }
        for body, field in wrong.items():
            with self.subTest(body=body):
                answer = self.client.request("PUT", "/v1/echo/e", body)
                self.assert_error(answer, 400, "bad_request", field)
        self.assertEqual(self.client.request("GET", "/v1/echo/e").status, 404)

    def test_put_without_body(self):
        answer = self.client.request("PUT", "/v1/echo/e")
        self.assert_error(answer, 400, "bad_request", "body")

    def test_unknown_path_and_method(self):
        self.assert_error(self.client.request("GET", "/nowhere"), 404, "not_found")
        for method in ("POST", "PATCH", "BREW"):
            answer = self.client.request(method, "/v1/echo/k")
            self.assert_error(answer, 405, "method_not_allowed")

    def test_head_has_length_and_no_body(self):
        self.client.request("PUT", "/v1/echo/headed", value_body("v"))
        size = self.client.request("GET", "/v1/echo/headed").headers["content-length"]
        answer = self.client.request("HEAD", "/v1/echo/headed")
        self.assertEqual((answer.status, answer.headers["content-length"]), (200, size))
        answer = self.client.request("HEAD", "/v1/echo/nothing")
        self.assertEqual(answer.status, 404)
        # A body after the HEAD would stand in front of this answer.
        self.assertEqual(self.client.request("GET", "/healthz").json(), {"alive": True})

    def test_corr_id_comes_back(self):
        given = {"X-Corr-ID": "my-id.7:a_b"}
        answer = self.client.request("GET", "/healthz", headers=given)
        self.assertEqual(answer.headers["x-corr-id"], "my-id.7:a_b")
        answer = self.client.request("GET", "/nowhere", headers=given)
        self.assertEqual(answer.json()["corr_id"], "my-id.7:a_b")
        answer = self.client.request("GET", "/nowhere", headers={"X-Corr-ID": "a b<script>"})
        self.assertRegex(answer.json()["corr_id"], r"^[0-9a-f]{16}$")

    def test_corr_id_is_not_taken_over_by_the_next_request(self):
        self.client.request("GET", "/healthz", headers={"X-Corr-ID": "of-the-first"})
        self.client.send(b"no request at all\r\n\r\n")
        answer = self.client.response()
        self.assertEqual(answer.status, 400)
        self.assertNotEqual(answer.json()["corr_id"], "of-the-first")

    def test_bad_request_is_not_counted_for_the_route_before_it(self):
        def counted():
            return self.node.metric("http_requests_total", route="/healthz", status="4xx",
                                    listener="http")

        before = counted()
        self.client.request("GET", "/healthz")
        self.client.send(b"no request at all\r\n\r\n")
        self.assertEqual(self.client.response().status, 400)
        self.assertEqual(counted(), before)


class FramingTest(SharedNode):
    config = {"echo.value_max_bytes": MIB}

    def test_keep_alive(self):
        for _ in range(50):
            answer = self.client.request("GET", "/healthz")
            self.assertEqual(answer.status, 200)
            self.assertNotIn("connection", answer.headers)
        answer = self.client.request("GET", "/healthz", headers={"Connection": "close"})
        self.assertEqual(answer.headers["connection"], "close")
        self.assertTrue(self.client.closed_by_peer())

    def test_pipeline_of_gets_and_puts(self):
        requests, expected, versions = [], [], {}
        for i in range(200):
            key = f"pipe-{i % 17}"
            if i % 3 == 0:
                requests.append(make_request("PUT", f"/v1/echo/{key}", value_body(f"v{i}")))
                versions[key] = (versions.get(key, (0, ""))[0] + 1, f"v{i}")
                expected.append(("PUT", key, versions[key]))
            requests.append(make_request("GET", f"/v1/echo/{key}"))
            expected.append(("GET", key, versions.get(key)))
        self.client.send(b"".join(requests))
        for step, (method, key, known) in enumerate(expected):
            with self.subTest(step=step):
                self.check_piped(method, key, known)

    def check_piped(self, method, key, known):
        answer = self.client.response()
        if known is None:
            self.assertEqual(answer.status, 404)
            return
        body = answer.json()
        self.assertEqual((body["key"], body["version"]), (key, known[0]))
        if method == "GET":
            self.assertEqual(body["value"], known[1])

    def test_dripped_bytes(self):
        for byte in make_request("PUT", "/v1/echo/drip", value_body("drop")):
            self.client.send(bytes([byte]))
        self.assertEqual(self.client.response().status, 201)
        for byte in make_request("GET", "/v1/echo/drip"):
            self.client.send(bytes([byte]))
        self.assertEqual(self.client.response().json()["value"], "drop")

    def test_expect_continue(self):
        body = value_body("waited")
        self.client.send(make_request("PUT", "/v1/echo/expect", None, {
            "Expect": "100-continue", "Content-Length": len(body)}))
        self.assertEqual(self.client.response().status, 100)
        self.client.send(body)
        self.assertEqual(self.client.response().status, 201)

    def test_expect_continue_is_not_encouraged_in_vain(self):
        self.client.send(make_request("PUT", "/v1/echo/expect", None, {
            "Expect": "100-continue", "Content-Length": MIB + 1}))
        self.assertEqual(self.client.response().status, 413)

    def test_chunked_body(self):
        for piece in (1, 7, 4096):
            key = f"/v1/echo/chunked-{piece}"
            self.client.send(make_request("PUT", key, chunked(value_body("in pieces"), piece),
                                          {"Transfer-Encoding": "chunked"}))
            self.assertEqual(self.client.response().status, 201)
            self.assertEqual(self.client.request("GET", key).json()["value"], "in pieces")

    def test_chunked_body_with_extension_and_trailer(self):
        body = b"e;name=x\r\n{\"value\":\"ext\"\r\n1\r\n}\r\n0\r\nTrailer: t\r\n\r\n"
        self.client.send(make_request("PUT", "/v1/echo/ext", body,
                                      {"Transfer-Encoding": "chunked"}))
        self.assertEqual(self.client.response().status, 201)
        self.assertEqual(self.client.request("GET", "/v1/echo/ext").json()["value"], "ext")

    def test_packed_bodies(self):
        bare = zlib.compressobj(wbits=-15)
        body = value_body("packed")
        packed = [("gzip", gzip.compress(body)), ("deflate", zlib.compress(body)),
                  ("deflate", bare.compress(body) + bare.flush())]
        for i, (coding, data) in enumerate(packed):
            answer = self.client.request("PUT", f"/v1/echo/packed-{i}", data,
                                         {"Content-Encoding": coding})
            self.assertEqual(answer.status, 201, answer.body)
            found = self.client.request("GET", f"/v1/echo/packed-{i}").json()
            self.assertEqual(found["value"], "packed")

    def test_damaged_gzip(self):
        data = gzip.compress(value_body("packed"))
        for bad in (data[:-3], b"x" + data, data + b"more"):
            with self.node.client() as client:
                answer = client.request("PUT", "/v1/echo/bad", bad, {"Content-Encoding": "gzip"})
            self.assert_error(answer, 400, "bad_request", "body")

    def put_in_every_frame(self, body):
        """The status for Content-Length, chunked, and gzip."""
        packed = gzip.compress(body, compresslevel=1)
        sent = [(body, {}), (chunked(body), {"Transfer-Encoding": "chunked"}),
                (packed, {"Content-Encoding": "gzip"})]
        out = []
        for data, headers in sent:
            with self.node.client() as client:
                client.try_send(make_request("PUT", "/v1/echo/long", data, headers))
                out.append(client.response())
        return out

    def test_longest_body(self):
        for answer in self.put_in_every_frame(lib.noise_body_of(MIB)):
            self.assertIn(answer.status, (200, 201))
        self.client.request("DELETE", "/v1/echo/long")

    def test_too_long_body(self):
        for answer in self.put_in_every_frame(lib.noise_body_of(MIB + 1)):
            self.assert_error(answer, 413, "frame_too_large")
            self.assertIn("body", answer.json()["field"])

    def test_gzip_bomb(self):
        answer = self.client.request("PUT", "/v1/echo/bomb", lib.gzip_bomb(500_000),
                                     {"Content-Encoding": "gzip"})
        self.assert_error(answer, 413, "frame_too_large", "body")

    def test_long_head(self):
        fits = {"X-Long": "x" * 16_000}
        self.assertEqual(self.client.request("GET", "/healthz", headers=fits).status, 200)
        self.client.try_send(make_request("GET", "/healthz", headers={"X-Long": "x" * 16_384}))
        self.assert_error(self.client.response(), 431, "header_too_large")
        self.assertTrue(self.client.closed_by_peer())

    def test_endless_head(self):
        self.client.try_send(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"x" * 20_000)
        self.assert_error(self.client.response(), 431, "header_too_large")

    def test_many_headers(self):
        many = {f"X-{i}": "v" for i in range(65)}
        self.client.send(make_request("GET", "/healthz", headers=many))
        self.assert_error(self.client.response(), 431, "header_too_large")

    def test_http_1_0(self):
        self.client.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = self.client.response()
        self.assertEqual((answer.status, answer.headers["connection"]), (200, "close"))
        self.assertTrue(self.client.closed_by_peer())

    def test_half_closed_client_is_answered(self):
        self.client.send(make_request("GET", "/healthz"))
        self.client.sock.shutdown(socket.SHUT_WR)
        self.assertEqual(self.client.response().status, 200)
        self.assertTrue(self.client.closed_by_peer())


class SmugglingTest(SharedNode):
    """Each shape is followed by a PUT that must never be executed."""
    shapes = {
        "both lengths": "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "both lengths, other order":
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "transfer coding twice":
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer coding listed": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "transfer coding unknown": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "padded name": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "folded header": "X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two hosts": "Host: other\r\n\r\n",
        "bare LF in the head": "X-A: b\nContent-Length: 2\r\n\r\n{}",
        "bare CR in a value": "X-A: b\rX-B: c\r\n\r\n",
        "NUL in a value": "X-A: b\0c\r\n\r\n",
        "length twice": "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "lengths that differ": "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "length listed": "Content-Length: 2, 2\r\n\r\n{}",
        "length signed": "Content-Length: +2\r\n\r\n{}",
        "length negative": "Content-Length: -2\r\n\r\n{}",
        "length hexadecimal": "Content-Length: 0x2\r\n\r\n{}",
        "length too long": "Content-Length: 99999999999999999999\r\n\r\n{}",
        "chunk size empty": "Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n",
        "chunk size signed": "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
        "chunk size prefixed": "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        "chunk size negative": "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        "chunk size spaced": "Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
        "chunk size overflows":
            "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
        "chunk line ends in LF": "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
        "chunk longer than said": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n",
    }

    def test_shapes(self):
        for number, (name, rest) in enumerate(self.shapes.items()):
            with self.subTest(shape=name):
                self.check_shape(f"smuggled-{number}", rest.encode("latin-1"))

    def check_shape(self, key, rest):
        head = b"PUT /v1/echo/carrier HTTP/1.1\r\nHost: test\r\n"
        with self.node.client() as client:
            client.send(head + rest + make_request("PUT", f"/v1/echo/{key}", value_body("x")))
            answer = client.response()
            self.assertIn(answer.status, (400, 501), answer.body)
            self.assertTrue(client.closed_by_peer())
        self.assertEqual(self.node.get(f"/v1/echo/{key}").status, 404)
        self.assertEqual(answer.headers.get("connection"), "close")

    def test_bare_lf_request_line(self):
        self.client.send(b"GET /healthz HTTP/1.1\nHost: test\n\n")
        self.assert_error(self.client.response(), 400, "bad_request")
        self.assertTrue(self.client.closed_by_peer())

    def test_missing_host(self):
        self.client.send(b"GET /healthz HTTP/1.1\r\n\r\n")
        self.assert_error(self.client.response(), 400, "bad_request", "Host")


class ConfigurationTest(unittest.TestCase):
    def refused(self, node):
        """The complaint of a node that must not start."""
        node.launch()
        self.assertEqual(node.wait(), 2, node.log())
        return node.log()

    def test_problems_are_named(self):
        wrong = {"http.bodymax": ("5", "no such key"),
                 "http.backlog": ("many", "allowed: 1..65535"),
                 "http.pipeline_max": ("4097", "allowed: 1..1024")}
        with Node({k: v for k, (v, _) in wrong.items()}, start=False) as node:
            said = self.refused(node)
            lines = node.config_file.read_text().splitlines()
            for key, (value, hint) in wrong.items():
                at = lines.index(f"  {key.split('.')[1]}: {value}") + 1
                place = re.escape(f"{node.config_file}:{at}")
                self.assertRegex(said, rf"{place}: {re.escape(key)}: .*{re.escape(hint)}")

    def test_problem_in_environment_and_flag(self):
        with Node(env={"TIDEPOOL_HTTP__BACKLOG": "0"}, sets=["nowhere=1"], start=False) as node:
            said = self.refused(node)
        self.assertRegex(said, r"TIDEPOOL_HTTP__BACKLOG: http\.backlog: .*allowed: 1\.\.65535")
        self.assertRegex(said, r"--set: nowhere: no such key")

    def test_precedence(self):
        # What is in force is seen from outside: the name of the node, and a body's limit.
        env = {"TIDEPOOL_NODE__NAME": "from-env", "TIDEPOOL_HTTP__BODY_MAX_BYTES": "20"}
        with Node({"node.name": "from-file", "http.body_max_bytes": 10, "log.level": "warn"},
                  env=env, sets=["node.name=from-flag"]) as node:
            self.assertEqual(node.status()["node"], "from-flag")
            self.assertEqual(node.put("k", "12345").status, 201)
            self.assertEqual(node.put("k", "1234567890").status, 413)
            self.assertNotIn("INFO", node.log().split("Reactor backend")[-1])
            self.assertEqual(node.stop(), 0)

    def test_live_reload(self):
        with Node({"http.body_max_bytes": 1000}) as node, node.client() as old:
            self.assertEqual(old.request("PUT", "/v1/echo/k", value_body_of(1000)).status, 201)
            node.write_config(http__body_max_bytes=20)
            node.reload()
            self.assertEqual(node.put("k", "1234567890123").status, 413)
            self.assertEqual(old.request("PUT", "/v1/echo/k", value_body_of(21)).status, 413)
            node.wait_for_log("http.body_max_bytes changed from 1000 to 20")
            self.assertEqual(node.stop(), 0)

    def test_restart_field_is_reported_and_not_in_force(self):
        with Node({"node.name": "first"}) as node:
            node.write_config(node__name="second")
            node.reload()
            node.wait_for_log("node.name needs a restart to change from first to second")
            self.assertEqual(node.status()["node"], "first")
            self.assertEqual(node.stop(), 0)

    def test_bad_file_changes_nothing(self):
        with Node({"http.body_max_bytes": 1000}) as node:
            version = node.status()["config_version"]
            node.write_config(http__body_max_bytes=20, http__pipeline_max=0)
            node.reload()
            node.wait_for_log("configuration not changed")
            self.assertIn("http.pipeline_max", node.log())
            self.assertEqual(node.put("k", "1234567890123").status, 201)
            node.config_file.unlink()
            node.reload()
            self.assertEqual(node.status()["config_version"], version)
            self.assertEqual(node.stop(), 0)

    def test_many_reloads_end_with_the_last_file(self):
        # Each SIGHUP comes while an earlier one may be at work; the last file must win.
        with Node({"http.body_max_bytes": 1000}) as node:
            for size in range(900, 999):
                node.write_config(http__body_max_bytes=size)
                node.send_signal(signal.SIGHUP)
            node.write_config(http__body_max_bytes=30)
            node.send_signal(signal.SIGHUP)
            poll(lambda: node.put("k", "x" * 50).status == 413, "the last file is in force", 10)
            self.assertEqual(node.stop(), 0)

    def test_port_in_use(self):
        for key in ("http_port", "ops_port"):
            with self.subTest(port=key), Node(start=False) as node, socket.socket() as taken:
                taken.bind((lib.LOOPBACK, getattr(node, key)))
                taken.listen()
                node.launch()
                self.assertEqual(node.wait(), 1)
                said = node.complaints()
                self.assertEqual(len(said), 1, said)
                self.assertTrue(said[0].startswith("tidepool: cannot listen on"), said)

    def test_profiles(self):
        files = sorted((lib.ROOT / "conf").glob("*.yaml"))
        self.assertTrue(files)
        for file in files:
            with self.subTest(file=file.name):
                told = subprocess.run([lib.node_program(), "--config", str(file), "--check"],
                                      capture_output=True, text=True, timeout=lib.PATIENCE_S,
                                      check=False)
                self.assertEqual(told.returncode, 0, told.stderr)

    def test_command_line(self):
        told = subprocess.run([lib.node_program(), "--nonsense"], capture_output=True, text=True,
                              timeout=lib.PATIENCE_S, check=False)
        self.assertEqual(told.returncode, 2)
        self.assertEqual(len(told.stderr.splitlines()), 1)


class CapabilityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokens = []
        cls.node = Node({"auth.required": True, "log.level": "trace"}, start=False)
        cls.keys = cls.node.folder / "keys"
        cls.add_key("main")
        cls.keys.chmod(0o600)
        cls.node.write_config(auth__keys_file=cls.keys)
        cls.node.start()

    @classmethod
    def tearDownClass(cls):
        try:
            code, log = cls.node.stop(), cls.node.log()
        finally:
            cls.node.discard()
        leaked = [token for token in cls.tokens if token in log or token[20:60] in log]
        if code != 0 or leaked:
            raise AssertionError(f"exit code {code}, tokens in the log: {leaked}")

    @classmethod
    def add_key(cls, name):
        made = lib.ctl("cap", "keygen", name)
        with open(cls.keys, "a", encoding="ascii") as file:
            file.write(made.stdout)

    def mint(self, *caveats, key="main"):
        args = [part for caveat in caveats for part in ("--caveat", caveat)]
        return self.made(lib.ctl("cap", "mint", "--keys", str(self.keys), "--key", key, *args))

    def attenuate(self, token, *caveats):
        args = [part for caveat in caveats for part in ("--caveat", caveat)]
        return self.made(lib.ctl("cap", "attenuate", "-", *args, stdin=token))

    def made(self, told):
        self.assertEqual(told.returncode, 0, told.stderr)
        self.tokens.append(told.stdout.strip())
        return self.tokens[-1]

    def put(self, token, key="k", value="v"):
        return self.node.put(key, value, {"Authorization": f"Bearer {token}"})

    def get(self, token, path="/v1/echo/k"):
        return self.node.get(path, {"Authorization": f"Bearer {token}"})

    def test_none_or_nonsense(self):
        answer = self.node.get("/v1/echo/k")
        self.assertEqual(answer.status, 401)
        self.assertEqual(answer.headers["www-authenticate"], "Bearer")
        genuine = self.mint()
        flipped = genuine[:-2] + ("A" if genuine[-2] != "A" else "B") + genuine[-1]
        for token in ("", "x", "QUJD" * 30, flipped, genuine[:-8], "A" * 5000):
            self.assertEqual(self.get(token).status, 401)
        answer = self.node.get("/v1/echo/k", {"Authorization": "Basic dTpw"})
        self.assertEqual(answer.status, 401)

    def test_health_needs_none(self):
        self.assertEqual(self.node.get("/healthz").status, 200)

    def test_minted(self):
        token = self.mint()
        self.assertIn(self.put(token).status, (200, 201))
        self.assertEqual(self.get(token).status, 200)

    def test_caveats_deny(self):
        now = int(time.time())
        self.assertIn(self.put(self.mint()).status, (200, 201))
        for caveat in ("path=/v1/other", "path=/v1/ech", "method=GET", f"expires={now - 1}",
                       f"not-before={now + 3600}", "account=other", "body=3",
                       "audience=elsewhere"):
            with self.subTest(caveat=caveat):
                answer = self.put(self.mint(caveat))
                self.assertEqual(answer.status, 403, answer.body)
                self.assertIn(caveat.split("=")[0], answer.json()["message"])

    def test_caveats_allow(self):
        now = int(time.time())
        token = self.mint("path=/v1/echo", "method=GET,PUT", f"expires={now + 3600}",
                          f"not-before={now - 10}", "account=k", "body=100", "audience=tidepool")
        self.assertIn(self.put(token, key="k1").status, (200, 201))
        self.assertEqual(self.put(token, key="j").status, 403)
        self.assertEqual(self.put(token, key="k1", value="x" * 100).status, 403)

    def test_body_caveat_holds_for_other_frames(self):
        token = self.mint("body=100")
        bearer = {"Authorization": f"Bearer {token}"}
        packed = gzip.compress(value_body("x" * 300))
        self.assertLess(len(packed), 100)
        with self.node.client() as client:
            client.send(make_request("PUT", "/v1/echo/k", chunked(value_body("x" * 300)),
                                     {**bearer, "Transfer-Encoding": "chunked"}))
            self.assertEqual(client.response().status, 403)
        with self.node.client() as client:
            client.send(make_request("PUT", "/v1/echo/k", packed,
                                     {**bearer, "Content-Encoding": "gzip"}))
            self.assertIn(client.response().status, (403, 413))

    def test_rate(self):
        bearer = {"Authorization": f"Bearer {self.mint('rate=2')}"}
        with self.node.client() as client:
            for _ in range(1000):
                answer = client.request("GET", "/v1/echo/k", headers=bearer)
                if answer.status == 429:
                    break
            self.assertEqual(answer.status, 429)
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
            poll(lambda: client.request("GET", "/v1/echo/k", headers=bearer).status != 429,
                 "the rate recovers")

    def test_attenuated(self):
        wide = self.mint("path=/v1/echo")
        narrow = self.attenuate(wide, "method=GET")
        self.assertIn(self.put(wide).status, (200, 201))
        self.assertEqual(self.put(narrow).status, 403)
        self.assertEqual(self.get(narrow).status, 200)
        wider = self.attenuate(narrow, "method=GET,PUT")
        self.assertEqual(self.put(wider).status, 403)

    def test_rotation(self):
        old = self.mint()
        self.add_key("second")
        fresh = self.mint(key="second")
        self.assertEqual(self.get(fresh).status, 401)
        self.node.reload()
        self.assertNotEqual(self.get(fresh).status, 401)
        self.assertNotEqual(self.get(old).status, 401)
        lines = self.keys.read_text().splitlines(keepends=True)
        self.keys.write_text("".join(line for line in lines if not line.startswith("second")))
        self.node.reload()
        self.assertEqual(self.get(fresh).status, 401)

    def test_open_keys_file_on_reload_changes_nothing(self):
        self.addCleanup(self.restore_keys_mode)
        version = self.node.status()["config_version"]
        self.keys.chmod(0o644)
        self.node.write_config(http__pipeline_max=63)
        self.node.reload()
        self.node.wait_for_log("must be a file of mode 0600")
        self.assertNotEqual(self.get(self.mint_with_mode()).status, 401)
        self.assertEqual(self.node.status()["config_version"], version)

    def mint_with_mode(self):
        self.keys.chmod(0o600)
        return self.mint()

    def restore_keys_mode(self):
        self.keys.chmod(0o600)
        self.node.write_config(http__pipeline_max=64)
        self.node.reload()

    def test_open_keys_file_refuses_to_start(self):
        with Node({"auth.required": True}, start=False) as node:
            keys = node.folder / "keys"
            keys.write_text(self.keys.read_text())
            keys.chmod(0o644)
            node.write_config(auth__keys_file=keys)
            node.launch()
            self.assertEqual(node.wait(), 1)
            said = node.complaints()
            self.assertEqual(len(said), 1, said)
            self.assertIn("0600", said[0])


class WithCertificates:
    def make_certificate(self, node, name):
        """Both files by renaming, as certificate tools do."""
        made = {kind: node.folder / f"new-{kind}.pem" for kind in ("cert", "key")}
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:x",
             "-keyout", made["key"], "-out", made["cert"]],
            capture_output=True, timeout=lib.PATIENCE_S, check=True)
        for kind, file in made.items():
            os.replace(file, node.folder / f"{kind}.pem")

    @staticmethod
    def trusting(version):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        return context


class TlsTest(WithCertificates, unittest.TestCase):
    def node_with_tls(self):
        node = Node({"http.tls.enabled": True}, start=False)
        self.addCleanup(node.discard)
        node.write_config(http__tls__cert_file=node.folder / "cert.pem",
                          http__tls__key_file=node.folder / "key.pem")
        self.make_certificate(node, "first")
        node.start()
        return node

    def common_name(self, node):
        """Of the certificate that a new connection sees."""
        with node.client(tls=self.trusting(ssl.TLSVersion.TLSv1_3)) as client:
            der = client.sock.getpeercert(binary_form=True)
        shown = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-subject"],
                               input=der, capture_output=True, timeout=lib.PATIENCE_S, check=True)
        return shown.stdout.decode().split("=")[-1].strip()

    def test_tls(self):
        node = self.node_with_tls()
        with node.client(tls=self.trusting(ssl.TLSVersion.TLSv1_3)) as client:
            self.assertEqual(client.sock.version(), "TLSv1.3")
            for _ in range(3):
                self.assertEqual(client.request("GET", "/healthz").status, 200)
            body = lib.noise_body_of(60_000)
            self.assertEqual(client.request("PUT", "/v1/echo/t", body).status, 201)
            self.assertEqual(len(client.request("GET", "/v1/echo/t").json()["value"]),
                             len(json.loads(body)["value"]))
        with self.assertRaises(OSError):
            node.client(tls=self.trusting(ssl.TLSVersion.TLSv1_2)).close()
        with node.client() as plain:
            plain.send(make_request("GET", "/healthz"))
            self.assertNotIn(b"HTTP/1.1", plain.rest())
        self.assertEqual(self.common_name(node), "first")
        self.make_certificate(node, "second")
        poll(lambda: self.common_name(node) == "second", "the new certificate", 20)
        with node.client(tls=self.trusting(ssl.TLSVersion.TLSv1_3)) as idle:
            self.assertEqual(idle.request("GET", "/healthz").status, 200)
            node.send_signal(signal.SIGTERM)
            self.assertTrue(idle.closed_by_peer())
        self.assertEqual(node.wait(), 0, node.log()[-2000:])

    def test_missing_certificate_is_one_line(self):
        with Node({"http.tls.enabled": True, "http.tls.cert_file": "/nowhere/cert",
                   "http.tls.key_file": "/nowhere/key"}, start=False) as node:
            node.launch()
            self.assertEqual(node.wait(), 1, node.log())
            said = node.complaints()
            self.assertEqual(len(said), 1, said)


class ProfileTest(WithCertificates, unittest.TestCase):
    """The profiles as they are, but for addresses, files and the size of this machine."""

    def start_profile(self, name, **more):
        node = Node(start=False)
        self.addCleanup(node.discard)
        wanted = {key: node.config[key] for key in ("http.listen", "ops.listen", "node.data_dir")}
        wanted.update({"reactor.memory": "1G", "reactor.lock_memory": "false"})
        wanted.update({key.replace("__", "."): node.folder / file for key, file in more.items()})
        node.config_file = lib.ROOT / "conf" / f"{name}.yaml"
        node._sets = [f"{key}={value}" for key, value in wanted.items()]
        return node

    def test_local(self):
        node = self.start_profile("local")
        node.start()
        self.assertEqual(node.stop(), 0)

    def test_bare_metal_io_uring(self):
        node = self.start_profile("bare-metal-io_uring")
        node.start()
        with node.client() as client:
            self.assertEqual(client.request("GET", "/healthz").status, 200)
        self.assertEqual(node.stop(), 0)

    def test_production(self):
        node = self.start_profile("production", http__tls__cert_file="cert.pem",
                                  http__tls__key_file="key.pem", auth__keys_file="keys")
        self.make_certificate(node, "production")
        (node.folder / "keys").write_text(lib.ctl("cap", "keygen", "k1").stdout)
        (node.folder / "keys").chmod(0o600)
        node.start()
        with node.client(tls=self.trusting(ssl.TLSVersion.TLSv1_3)) as client:
            self.assertEqual(client.request("GET", "/healthz").status, 200)
        self.assertEqual(node.stop(), 0)


class EventsTest(unittest.TestCase):
    def setUp(self):
        self.node = Node({"http.write_timeout_ms": 3000, "node.drain_deadline_ms": 8000})
        self.addCleanup(self.node.discard)

    def subscribe(self, before=b"", **options):
        """A subscriber whose stream has begun."""
        client = self.node.client(**options)
        self.addCleanup(client.close)
        client.send(before + make_request("GET", "/v1/echo-events"))
        for _ in range(before.count(b"\r\n\r\n")):
            client.response()
        answer = client.response()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"], "text/event-stream")
        return client

    def subscribers(self):
        return self.node.metric("http_sse_subscribers")

    def next_event(self, client):
        while True:
            text = client.read_until(b"\n\n").decode()
            if not text.startswith(":"):
                return json.loads(text.removeprefix("data: "))

    def test_event_for_a_put(self):
        clients = [self.subscribe() for _ in range(4)]  # of both cores
        self.node.put("seen", "v")
        for client in clients:
            self.assertEqual(self.next_event(client), {"key": "seen", "version": 1})
        self.assertEqual(self.node.stop(), 0, self.node.log()[-2000:])

    def test_client_that_leaves(self):
        clients = [self.subscribe() for _ in range(6)]
        poll(lambda: self.subscribers() == 6, "six subscribers")
        for i, client in enumerate(clients):
            client.close() if i % 2 else client.reset()
        poll(lambda: self.subscribers() == 0, "no subscribers")
        self.assertEqual(self.node.stop(), 0)

    def test_head_of_a_stream_has_no_events(self):
        with self.node.client() as client:
            client.send(make_request("HEAD", "/v1/echo-events"))
            self.assertEqual(client.response(head_only=True).status, 200)
            self.node.put("unseen", "v")
            client.sock.shutdown(socket.SHUT_WR)
            self.assertNotIn(b"data:", client.rest())

    def put_until(self, done):
        """Writes one key and looks at every event of it, until done(); an event is 1.6 KB."""
        key = "%01" * 256
        one = make_request("PUT", f"/v1/echo/{key}", value_body("v"))
        written = 0
        with self.node.client() as writer:
            while not done():
                writer.send(one * 50)
                for _ in range(50):
                    self.assertIn(writer.response().status, (200, 201))
                # Announcements are calls of their own: all arrive, in whatever order.
                seen = sorted(self.next_event(self.healthy)["version"] for _ in range(50))
                self.assertEqual(seen, list(range(written + 1, written + 51)))
                written += 50
                self.assertLess(written, 200_000, "the stuck subscriber is never dropped")

    def drop_a_stuck_one(self, before):
        self.healthy = self.subscribe()
        self.subscribe(before, receive_buffer=4096)
        poll(lambda: self.subscribers() == 2, "two subscribers")
        self.put_until(lambda: self.subscribers() == 1)
        self.assertTrue(self.node.alive(), self.node.log()[-4000:])
        poll(lambda: self.node.metric("http_sse_dropped_total") == 1, "it is counted", 10)

    def test_stuck_subscriber_is_dropped_and_counted(self):
        self.drop_a_stuck_one(b"")
        self.assertEqual(self.node.stop(), 0, self.node.log()[-2000:])

    def test_stuck_subscriber_behind_pipelined_requests(self):
        # Keys of both cores: at least one answer is still owed when the stream's turn comes.
        before = b"".join(make_request("GET", f"/v1/echo/{i}") for i in range(16))
        self.drop_a_stuck_one(before)
        self.assertEqual(self.node.stop(), 0, self.node.log()[-2000:])


class LogTest(unittest.TestCase):
    def test_json_lines(self):
        with Node({"log.format": "json", "log.level": "debug"}) as node:
            node.put("k", "v")
            with node.client() as client:
                client.reset()
            node.write_config(http__body_max_bytes=77)
            node.reload()
            node.write_config(http__body_max_bytes="\"quo\\\"ted\"")
            node.reload()
            self.assertEqual(node.stop(), 0)
            lines = node.log().splitlines()
        # A sanitizer build begins with a banner that is no log line.
        lines = [line for line in lines if not line.startswith("WARNING: debug mode")]
        self.assertTrue(lines)
        for line in lines:
            self.assertIn("message", self.parsed(line))
        self.assertTrue(any(json.loads(line).get("logger") == "node" for line in lines))

    def parsed(self, line):
        try:
            return json.loads(line)
        except ValueError:
            self.fail(f"no JSON: {line!r}")


class DrainTest(unittest.TestCase):
    def half_a_put(self, node):
        """A request whose head is in and whose body is not."""
        client = node.client()
        self.addCleanup(client.close)
        body = value_body("slow")
        client.send(make_request("PUT", "/v1/echo/slow", None, {
            "Content-Length": len(body), "Expect": "100-continue"}))
        self.assertEqual(client.response().status, 100)
        client.send(body[:5])
        return client, body[5:]

    def wait_until_draining(self, node):
        def draining():
            answer = node.ops_get("/readyz")
            return answer.status == 503 and answer.json()["phase"] == "draining"

        poll(draining, "/readyz says draining")

    def test_slow_request_is_finished(self):
        with Node({"node.drain_deadline_ms": 60_000, "http.read_timeout_ms": 60_000}) as node:
            idle = [node.client() for _ in range(5)]
            for client in idle:
                self.addCleanup(client.close)
                self.assertEqual(client.request("GET", "/healthz").status, 200)
            fresh = node.client()
            self.addCleanup(fresh.close)
            slow, rest = self.half_a_put(node)
            node.send_signal(signal.SIGTERM)
            self.wait_until_draining(node)
            for client in (*idle, fresh):
                self.assertTrue(client.closed_by_peer())
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                node.send_signal(number)
            self.assertTrue(node.alive())
            slow.send(rest)
            answer = slow.response()
            self.assertEqual((answer.status, answer.headers["connection"]), (201, "close"))
            slow.close()
            self.assertEqual(node.wait(), 0, node.log())
            self.assertIn("stopped clean", node.log())

    def test_request_begun_before_and_sent_while_draining_is_refused(self):
        with Node({"node.drain_deadline_ms": 60_000, "http.read_timeout_ms": 60_000}) as node:
            slow, rest = self.half_a_put(node)
            late = node.client()
            self.addCleanup(late.close)
            late.send(b"GET /v1/echo/k HTTP/1.1\r\n")
            idle = [node.client() for _ in range(6)]
            poll(lambda: node.core_sum("connections") == 8, "all are accepted")
            node.send_signal(signal.SIGTERM)
            for client in idle:  # of both cores: when they are closed, each core drains
                self.assertTrue(client.closed_by_peer())
                client.close()
            late.send(b"Host: test\r\n\r\n")
            self.check_refusal(late)
            slow.send(rest)
            self.assertEqual(slow.response().status, 201)
            slow.close()
            self.assertEqual(node.wait(), 0, node.log())

    def check_refusal(self, client):
        answer = client.response()
        self.assertEqual((answer.status, answer.json()["code"]), (503, "not_ready"))
        self.assertEqual(answer.headers["connection"], "close")
        self.assertIn("retry-after", answer.headers)
        client.close()

    def test_subscribers_do_not_hold_the_node(self):
        # Shorter than the stream's heartbeat, which must not be what ends it.
        with Node({"node.drain_deadline_ms": 8000}) as node, node.client() as client:
            client.send(make_request("GET", "/v1/echo-events"))
            self.assertEqual(client.response().status, 200)
            node.send_signal(signal.SIGTERM)
            client.rest()
            self.assertEqual(node.wait(), 0, node.log())

    def test_client_that_never_finishes_is_cut_off(self):
        with Node({"node.drain_deadline_ms": 500, "http.read_timeout_ms": 60_000}) as node:
            stuck = [self.half_a_put(node)[0] for _ in range(3)]
            self.assertEqual(node.stop(), 1)
            cut = re.findall(r"http: (\d+) connections cut off", node.log())
            self.assertEqual(sum(map(int, cut)), 3, node.log())
            for client in stuck:
                self.assertTrue(client.closed_by_peer())

    def test_interrupt_stops_too(self):
        with Node() as node:
            self.assertEqual(node.stop(signal.SIGINT), 0)


class RestartTest(unittest.TestCase):
    def test_after_kill_the_ports_are_free(self):
        with Node() as node, node.client() as client:
            self.assertEqual(client.request("GET", "/healthz").status, 200)
            self.assertEqual(node.stop(signal.SIGKILL), -signal.SIGKILL)
            node.start()
            self.assertEqual(node.get("/healthz").status, 200)
            self.assertEqual(node.stop(), 0)


class BackendTest(unittest.TestCase):
    def test_backends(self):
        for backend in ("epoll", "linux-aio", "io_uring"):
            with self.subTest(backend=backend):
                self.check_backend(backend)

    def check_backend(self, backend):
        with Node({"reactor.backend": backend}, start=False) as node:
            try:
                node.start()
            except AssertionError:
                if re.search(r"not (available|supported|permitted)|io_setup", node.log()):
                    self.skipTest(f"the kernel refuses {backend}: {node.log()[-300:]}")
                raise
            self.assertIn(f"Reactor backend: {backend}", node.log())
            self.assertEqual(node.put("k", "v").status, 201)
            self.assertEqual(node.get("/v1/echo/k").json()["value"], "v")
            self.assertEqual(node.stop(), 0)


if __name__ == "__main__":
    lib.run_tests()
