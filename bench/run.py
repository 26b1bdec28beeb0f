"""Whole-process figures on stated data, each beside a yardstick of the same run. `./dev bench [NAME…]` with the names below.

Data: 500-byte payloads, synchronous=FULL, checkpoints included, an empty store, the load generator on the same cores. Request
ids in two shapes: `ordered` by time, and `random` (32 characters); business and order numbers are ordered in both."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMA = os.path.join(ROOT, "sql/sqlite/migrations/0001_first.sql")
CONFIG = """listen: 127.0.0.1:0
store: sqlite:{folder}/backstop.db
log: {{ level: warn }}
queues:
  PAY_CALLBACK: {{ handler: "http://127.0.0.1:{sink}/pay", secret: bench, order_check: none, concurrency: 64 }}
"""


class Bench:
    def __init__(self, build, runs):
        self.bin, self.build, self.runs, self.rows = os.path.join(ROOT, build, "backstop"), os.path.join(ROOT, build, "bench"), runs, []

    def tool(self, name, *args):
        run = subprocess.run([os.path.join(self.build, name), *map(str, args)], text=True, capture_output=True, timeout=600)
        if run.returncode:
            raise SystemExit(f"{name} {args} failed: {run.stdout}{run.stderr}")
        return json.loads(run.stdout)

    def report(self, work, figure, aim, beside=""):
        self.rows.append((work, figure, aim, beside))
        print(f"{work:<34} {figure:<42} aim {aim:<26} {beside}", flush=True)

    def bare_sqlite(self, rows, per, shape):
        os.sync()
        with tempfile.TemporaryDirectory() as folder:
            return self.tool("bare_sqlite", f"{folder}/bare.db", SCHEMA, rows, per, shape)["per_second"]


class Server:
    """One server on an empty store; the sink is where its handler calls go."""

    def __init__(self, bench, sink=1):
        os.sync()  # what earlier runs left to write is not this run's work
        self.folder = tempfile.mkdtemp(prefix="backstop-bench-")
        self.config, port_file = f"{self.folder}/backstop.yaml", f"{self.folder}/port"
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(folder=self.folder, sink=sink))
        cli = lambda *args: subprocess.check_output([bench.bin, *args, "-c", self.config], text=True).strip()
        self.token = cli("token", "add", "bench", "--role", "admin")
        self.process = subprocess.Popen([bench.bin, "serve", "-c", self.config, "--port-file", port_file])
        while not os.path.exists(port_file) or not open(port_file, encoding="utf-8").read():
            time.sleep(0.02)
        self.port = int(open(port_file, encoding="utf-8").read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder)

    def api(self, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Sink:
    def __init__(self, bench):
        self.process = subprocess.Popen([f"{bench.build}/sink"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def served(self):
        self.process.stdin.write("?")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)


def middle(values):
    return statistics.median(values)


def submit(bench, connections, batch, tasks, aims, share, per):
    for shape in ("ordered", "random"):
        rates, bare, p99 = [], [], []
        for _ in range(bench.runs):
            with Server(bench) as server:
                got = bench.tool("load", server.port, server.token, connections, tasks, shape, batch)
            rates.append(got["per_second"])
            p99.append(got["p99_ms"])
            bare.append(bench.bare_sqlite(tasks, per, shape))
        ratio = middle([r / b for r, b in zip(rates, bare)])
        work = f"submit, {connections} conn., {'batch of ' + str(batch) + ', ' if batch > 1 else ''}{shape}"
        bench.report(work, f"{middle(rates):,.0f}/s, p99 {middle(p99):.1f} ms", f"≥ {aims[shape]:,}/s" + (", p99 ≤ 25 ms" if connections == 64 else ""),
                     f"bare loop at {per}: {middle(bare):,.0f}/s, ratio {ratio:.0%}" + (f" (aim ≥ {share}%)" if share else ""))


def submit64(bench):
    """POST /v1/tasks over 64 keep-alive connections."""
    submit(bench, 64, 1, 200_000, {"ordered": 15_000, "random": 9_000}, 45, 40)


def submit512(bench):
    """The same over 512 connections."""
    submit(bench, 512, 1, 200_000, {"ordered": 22_000, "random": 12_000}, 0, 40)


def batch(bench):
    """Batches of 1,000 (NDJSON)."""
    submit(bench, 4, 1000, 400_000, {"ordered": 50_000, "random": 24_000}, 70, 1000)


def drain(bench, tasks=100_000):
    """100,000 due tasks delivered to a local HTTP sink, 64 in flight."""
    rates, bare = [], []
    for _ in range(bench.runs):
        with Sink(bench) as sink:
            bare.append(bench.tool("bare_curl", f"http://127.0.0.1:{sink.port}/pay", 200_000, 64)["per_second"])
        with Sink(bench) as sink, Server(bench, sink.port) as server:
            server.api("/v1/queues/PAY_CALLBACK/pause", {"reason": "fill first"})
            bench.tool("load", server.port, server.token, 4, tasks, "ordered", 1000, "PAY_CALLBACK", "0s")
            server.api("/v1/queues/PAY_CALLBACK/resume", {"reason": "drain"})
            began = time.monotonic()
            while done(server) < tasks:
                time.sleep(0.05)
                if time.monotonic() - began > 120:
                    raise SystemExit(f"the drain stands: {server.api('/v1/stats')}")
            rates.append(tasks / (time.monotonic() - began))
            if sink.served() != tasks:
                raise SystemExit(f"the sink saw {sink.served()} calls for {tasks} tasks")
    ratio = middle([r / b for r, b in zip(rates, bare)])
    bench.report("drain 100,000, 64 in flight", f"{middle(rates):,.0f}/s", "≥ 14,000/s", f"bare curl loop: {middle(bare):,.0f}/s, ratio {ratio:.0%} (aim ≥ 45%)")


def done(server):
    return sum(i["counts"]["SUCCESS"] for i in server.api("/v1/stats")["items"])


def pickup(bench):
    """Start of the submit call → the handler sees the request, idle server, one at a time."""
    port = free_port()
    with Server(bench, port) as server:
        ours = bench.tool("pickup", "backstop", server.port, server.token, port, 1000)
    peer = "beanstalkd is not installed"
    if shutil.which("beanstalkd") or os.path.exists("/usr/bin/beanstalkd"):
        with tempfile.TemporaryDirectory() as folder:
            p = free_port()
            daemon = subprocess.Popen([shutil.which("beanstalkd") or "/usr/bin/beanstalkd", "-l", "127.0.0.1", "-p", str(p), "-b", folder, "-f0"])
            time.sleep(0.5)
            got = bench.tool("pickup", "beanstalkd", p, 1000)
            daemon.terminate()
            daemon.wait()
            peer = f"beanstalkd -f0 put → reserve: p50 {got['p50_ms']:.2f} ms, p99 {got['p99_ms']:.2f} ms"
    bench.report("pick-up, idle", f"p50 {ours['p50_ms']:.2f} ms, p99 {ours['p99_ms']:.2f} ms", "p50 ≤ 2 ms, p99 ≤ 8 ms", peer)


def idle(bench, seconds=20):
    """Resident memory and CPU of an idle server."""
    with Server(bench) as server:
        time.sleep(2)
        before = server.cpu_seconds()
        time.sleep(seconds)
        cpu = (server.cpu_seconds() - before) / seconds
        bench.report("idle", f"{server.resident_mib():.1f} MiB, {cpu:.2%} of a core", "≤ 25 MB, < 0.5 %", f"over {seconds} s")


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


WORKS = [submit64, submit512, batch, drain, pickup, idle]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                   epilog="\n".join(f"  {w.__name__:<10} {w.__doc__}" for w in WORKS))
    args.add_argument("names", nargs="*", choices=[[], *(w.__name__ for w in WORKS)], metavar="NAME")
    args.add_argument("--build", default="build-release")
    args.add_argument("--runs", type=int, default=3, help="the median of so many is shown")
    args = args.parse_args()
    bench = Bench(args.build, args.runs)
    for work in WORKS:
        if not args.names or work.__name__ in args.names:
            work(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
