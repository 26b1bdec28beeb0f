"""What every measurement uses: the tools, servers on private stores, the sink, the report."""
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMA = os.path.join(ROOT, "sql/sqlite/migrations/0001_first.sql")
PAY = 'PAY_CALLBACK: {{ handler: "http://127.0.0.1:{sink}/pay", secret: bench, order_check: none, concurrency: 64 }}'
# Its calls hang: a task of it holds its order for an hour, also after the server stopped.
HOLD = 'HOLD: {{ handler: "http://127.0.0.1:{sink}/hang/", secret: bench, order_check: none, call_timeout: 1h, lease: 2h }}'
OPEN_FILES = 8192


class Bench:
    def __init__(self, args):
        self.bin, self.build = os.path.join(ROOT, args.build, "backstop"), os.path.join(ROOT, args.build, "bench")
        self.runs, self.tasks, self.minutes, self.rows = args.runs, args.tasks, args.minutes, []
        self.folder = tempfile.mkdtemp(prefix="backstop-bench-", dir=args.folder)
        self.stores = {}

    def count(self, full):
        """`full` at the size of 1,000,000, in proportion at --tasks."""
        return max(1000, full * self.tasks // 1_000_000)

    def command(self, name, *args):
        return [os.path.join(self.build, name), *map(str, args)]

    def tool(self, name, *args):
        run = subprocess.run(self.command(name, *args), text=True, capture_output=True, timeout=3600)
        if run.returncode:
            raise SystemExit(f"{name} {args} failed: {run.stdout}{run.stderr}")
        return json.loads(run.stdout)

    def report(self, work, figure, aim, beside=""):
        self.rows.append((work, figure, aim, beside))
        print(f"{work:<44} {figure:<50} {'aim ' + aim if aim else '':<32} {beside}", flush=True)

    def bare_sqlite(self, rows, per, shape, store=None):
        """The bare loop's rows a second, on an empty store or on a copy of `store`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            if store:
                shutil.copyfile(store.path, f"{folder}/backstop.db")
            os.sync()
            return self.tool("bare_sqlite", f"{folder}/backstop.db", SCHEMA, rows, per, shape)["per_second"]

    def space(self, tasks, what):
        """Refuses to begin where `tasks` tasks, copies and log do not fit on the disk."""
        need, free = tasks * 3000 + (1 << 30), shutil.disk_usage(self.folder).free
        if free < need:
            raise SystemExit(f"{what} takes up to {need >> 30} GiB in {self.folder}, which has {free >> 30} GiB: --folder names another place")


class Server:
    """One server in a folder of its own: on an empty store, on a copy of `store`, or, with `folder`, on what is there (then kept)."""

    def __init__(self, bench, sink=1, store=None, queues=(PAY,), more="", folder=None, wait=True):
        self.bench, self.keeps, self.port = bench, folder is not None, free_port()
        self.folder = folder or tempfile.mkdtemp(dir=bench.folder)
        if store:
            shutil.copyfile(store.path, f"{self.folder}/backstop.db")
        os.sync()  # what earlier runs left to write is not this run's work
        self.config, self.path, token = f"{self.folder}/backstop.yaml", f"{self.folder}/backstop.db", f"{self.folder}/token"
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"listen: 127.0.0.1:{self.port}\nstore: sqlite:{self.path}\nlog: {{ level: warn }}\n{more}queues:\n")
            f.writelines(f"  {q.format(sink=sink)}\n" for q in (*queues, HOLD))
        if store:
            self.token = store.token
        elif os.path.exists(token):
            self.token = open(token, encoding="utf-8").read()
        else:
            self.token = self.cli("token", "add", "bench", "--role", "admin").strip()
            with open(token, "w", encoding="utf-8") as f:
                f.write(self.token)
        self.start(wait)

    def start(self, wait=True):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen([self.bench.bin, "serve", "-c", self.config], stdout=log, stderr=log)
        try:
            if wait:
                wait_until(self.ready, 60, lambda: "the server does not become ready: " + self.log_end())
        except BaseException:
            self.kill()
            raise

    def ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                s.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return s.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def cli(self, *args):
        return subprocess.check_output([self.bench.bin, *args, "-c", self.config], text=True)

    def log_end(self):
        return open(f"{self.folder}/log", encoding="utf-8", errors="replace").read()[-2000:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        if not self.keeps:
            shutil.rmtree(self.folder)

    def stop(self):
        for patience in (0.5, 120):  # the second signal ends the grace of calls that hang
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def api(self, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as e:
            raise SystemExit(f"{path}: {e} {e.read()[:500]}") from e

    def load(self, connections, tasks, shape="ordered", batch=1, queue="PAY_CALLBACK", delay="300d", **options):
        return self.bench.tool("load", *self.load_args(connections, tasks, shape, batch, queue, delay, options))

    def load_args(self, connections, tasks, shape="ordered", batch=1, queue="PAY_CALLBACK", delay="300d", options=None):
        return [self.port, self.token, connections, tasks, shape, batch, queue, delay, *(f"{k}={v}" for k, v in (options or {}).items())]

    def switch(self, queue, on):
        self.api(f"/v1/queues/{queue}/{'resume' if on else 'pause'}", {"reason": "bench"})

    def counts(self, queue="PAY_CALLBACK"):
        return next((i["counts"] for i in self.api("/v1/stats")["items"] if i["biz_type"] == queue), {})

    def done(self, queue="PAY_CALLBACK"):
        return self.counts(queue).get("SUCCESS", 0)

    def wait_done(self, n, queue="PAY_CALLBACK", seconds=1800):
        wait_until(lambda: self.done(queue) >= n, seconds, lambda: f"the drain stands: {self.counts(queue)} {self.log_end()}", 0.02)

    def fill(self, tasks, queue="PAY_CALLBACK", **options):
        """`tasks` due tasks in the queue, which is left paused."""
        self.switch(queue, False)
        self.load(4, tasks, "ordered", 1000, queue, "0s", **options)

    def settle(self, tasks, queue="PAY_CALLBACK"):
        """Lets the queue go and gives how many a second of its `tasks` tasks it settles."""
        before = self.done(queue)
        self.switch(queue, True)
        began = time.monotonic()
        self.wait_done(before + tasks, queue)
        return tasks / (time.monotonic() - began)

    def drain(self, tasks, queue="PAY_CALLBACK", **options):
        self.fill(tasks, queue, **options)
        return self.settle(tasks, queue)

    def memory_mib(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith(field)) / 1024

    def wal_mib(self):
        try:
            return os.stat(self.path + "-wal").st_size / (1 << 20)
        except FileNotFoundError:
            return 0

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Sink:
    def __init__(self, bench, port=0):
        self.process = subprocess.Popen(bench.command("sink", port), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def figures(self):
        """How many requests came, how many were answered."""
        self.process.stdin.write("?")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)


def middle(values):
    return statistics.median(values)


def wait_until(true, seconds, why, pause=0.01):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit(why())
        time.sleep(pause)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
