"""HTTP on one core against nginx on one core: the same wrk, the same core, rounds interleaved, medians.

nginx answers `return 200` with the body of our /healthz. Server on CPU 0, wrk on CPU 1; with one CPU they share it.
Prints requests/s of both, then RATIO lines. Also start-up to ready on an empty data folder.
"""
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROUNDS = 3
SECONDS = int(os.environ.get("BENCH_SECONDS", "3"))
CONNECTIONS = 64
PIPELINE = """
init = function(args)
  local requests = {}
  for i = 1, 16 do requests[i] = wrk.format() end
  batch = table.concat(requests)
end
request = function() return batch end
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def on_cpu(cpu):
    cpus = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cpus[cpu % len(cpus)])]


def wait_for(url):
    for _ in range(200):
        try:
            return urllib.request.urlopen(url, timeout=1).read()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{url} does not answer")


def start_nginx(folder):
    port = free_port()
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write(f"""
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ default_type application/json; return 200 '{{"alive":true}}'; }}
  }}
}}
""")
    binary = "/usr/sbin/nginx" if os.path.exists("/usr/sbin/nginx") else "nginx"
    process = subprocess.Popen(on_cpu(0) + [binary, "-c", conf, "-e", f"{folder}/nginx.log"])
    wait_for(f"http://127.0.0.1:{port}/")
    return process, port


def start_node(tidepool, folder):
    http, ops = free_port(), free_port()
    log = open(os.path.join(folder, "node.log"), "w", encoding="utf-8")
    sets = ["reactor.cores=1", "reactor.memory=512M", f"http.listen=127.0.0.1:{http}",
            f"ops.listen=127.0.0.1:{ops}", f"node.data_dir={folder}/data"]
    # epoll: the fastest of the three here for one small request at a time. BENCH_SET tries others.
    sets += os.environ.get("BENCH_SET", "reactor.backend=epoll").split()
    args = [word for s in sets for word in ("--set", s)]
    process = subprocess.Popen(on_cpu(0) + [tidepool] + args, stderr=log, stdout=log)
    wait_for(f"http://127.0.0.1:{ops}/readyz")
    return process, http


def nginx_worker(nginx):
    children = f"/proc/{nginx.pid}/task/{nginx.pid}/children"
    return int(open(children, encoding="ascii").read().split()[0])


def pid_of(process):
    return process if isinstance(process, int) else process.pid


def pause(process):
    os.kill(pid_of(process), signal.SIGSTOP)


def resume(process):
    os.kill(pid_of(process), signal.SIGCONT)


def requests_per_second(url, script):
    command = on_cpu(1) + ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s"]
    command += (["-s", script] if script else []) + [url]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out:
        raise SystemExit(f"{url}: {out}")
    return float(re.search(r"Requests/sec:\s*([\d.]+)", out).group(1))


def compare_http(tidepool, folder):
    script = os.path.join(folder, "pipeline.lua")
    with open(script, "w", encoding="ascii") as f:
        f.write(PIPELINE)
    nginx, nginx_port = start_nginx(folder)
    node, node_port = start_node(tidepool, folder)
    put = urllib.request.Request(f"http://127.0.0.1:{node_port}/v1/echo/k", method="PUT",
                                 data=b'{"value":"hello"}')
    urllib.request.urlopen(put, timeout=5).read()
    targets = {"nginx": f"http://127.0.0.1:{nginx_port}/",
               "healthz": f"http://127.0.0.1:{node_port}/healthz",
               "echo": f"http://127.0.0.1:{node_port}/v1/echo/k"}
    figures = {}
    try:
        for _ in range(ROUNDS):
            for kind, lua in (("plain", None), ("pipelined", script)):
                for name, url in targets.items():
                    # They share a CPU, and a node that polls would take it all: the other one sleeps.
                    pause(node if name == "nginx" else nginx_worker(nginx))
                    figures.setdefault((kind, name), []).append(requests_per_second(url, lua))
                    resume(node if name == "nginx" else nginx_worker(nginx))
    finally:
        for process in (nginx, node):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
    for kind in ("plain", "pipelined"):
        peer = statistics.median(figures[kind, "nginx"])
        for name, label in (("healthz", f"http_{kind}_vs_nginx"),
                            ("echo", f"http_echo_{kind}_vs_nginx")):
            ours = statistics.median(figures[kind, name])
            print(f"{label} tidepool {ours:.0f} requests/s")
            print(f"{label} nginx {peer:.0f} requests/s")
            print(f"RATIO {label} {ours / peer:.2f}", flush=True)


def start_up(tidepool):
    times = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            node, _ = start_node(tidepool, folder)
            node.send_signal(signal.SIGTERM)
            node.wait(timeout=30)
            log = open(os.path.join(folder, "node.log"), encoding="utf-8").read()
            times.append(int(re.search(r"ready after (\d+) ms", log).group(1)))
    print(f"start_up_to_ready {statistics.median(times)} ms (goal: below 300)")


def main():
    tidepool = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        compare_http(tidepool, folder)
    start_up(tidepool)


main()
