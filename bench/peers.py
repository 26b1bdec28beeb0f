"""Other programs beside ours. They are installed only for the benchmark; one that cannot be is left out, and that is said."""
import glob
import json
import os
import pwd
import shutil
import subprocess
import tempfile

from empty import bare_curl
from kit import ROOT, Server, Sink, middle

PEERS = os.path.join(ROOT, "bench/peers")
PAYLOAD = '{"raw":"' + "x" * 490 + '"}'
SETTINGS = "-c listen_addresses= -c shared_buffers=1GB -c max_wal_size=4GB -c autovacuum_naptime=10s"


def missing():
    """Why graphile-worker cannot run here, or nothing."""
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        return "PostgreSQL is not installed"
    if not shutil.which("node"):
        return "node is not installed"
    if os.path.exists(os.path.join(PEERS, "node_modules/graphile-worker")):
        return ""
    if not shutil.which("npm"):
        return "npm is not installed"
    run = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=PEERS, text=True, capture_output=True)
    return "" if run.returncode == 0 else "npm could not install it: " + (run.stderr.strip().splitlines() or ["?"])[0]


class Postgres:
    """A private cluster with durable commits, on a socket in its own folder; as root it runs as somebody else."""

    def __init__(self, bench):
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        # Not inside the benchmark's folder, which only its own user may enter.
        self.folder, self.prefix = tempfile.mkdtemp(prefix="backstop-bench-pg-", dir=os.path.dirname(bench.folder)), []
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres" if any(u.pw_name == "postgres" for u in pwd.getpwall()) else "nobody")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.dsn = f"postgresql:///postgres?host={self.folder}&user=bench"

    def run(self, program, *args):
        run = subprocess.run([*self.prefix, f"{self.bin}/{program}", *args], text=True, capture_output=True, cwd=self.folder)
        if run.returncode:
            raise SystemExit(f"{program} failed: {run.stdout}{run.stderr}")
        return run.stdout

    def __enter__(self):
        self.run("initdb", "-D", f"{self.folder}/data", "-U", "bench", "-A", "trust", "--no-sync", "-E", "UTF8")
        # Its output would keep a pipe of ours open.
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", "-o", f"{SETTINGS} -k {self.folder}", "start")
        return self

    def __exit__(self, *_):
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", "fast", "-w", "stop")
        shutil.rmtree(self.folder)

    def sql(self, text):
        return self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.dsn, "-c", text).strip()


def node(*args):
    run = subprocess.run(["node", *args], cwd=PEERS, text=True, capture_output=True, timeout=3600)
    if run.returncode:
        raise SystemExit(f"node {args} failed: {run.stderr[-2000:]}")
    return run.stdout


def add_jobs(db, n, queue="NULL", run_at="NULL"):
    """Through its own function for many, 5,000 at a time."""
    spec = f"ROW('deliver', '{PAYLOAD}', {queue}, {run_at}, NULL, NULL, NULL, NULL)::graphile_worker.job_spec"
    for first in range(0, n, 5000):
        db.sql(f"SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg({spec}) FROM generate_series(1, {min(5000, n - first)})))")


def drain_peer(bench, db, mode, tasks):
    add_jobs(db, tasks)
    with Sink(bench) as sink:
        got = json.loads(node("worker.js", db.dsn, f"http://127.0.0.1:{sink.port}/pay", str(tasks), "64", mode))
        if sink.figures()[1] != tasks:
            raise SystemExit(f"graphile-worker: the sink answered {sink.figures()[1]} calls for {tasks} jobs")
    return tasks / got["seconds"]


def fill_peer(bench, db):
    """Jobs that are not yet due, and jobs of a queue that is busy. It keeps no finished ones."""
    add_jobs(db, bench.tasks, run_at="now() + interval '300 days'")
    add_jobs(db, bench.tasks // 10, queue="'busy'")
    db.sql("UPDATE graphile_worker._private_job_queues SET locked_at = now(), locked_by = 'bench'")
    db.sql("VACUUM ANALYZE")


def graphile(bench):
    """graphile-worker on PostgreSQL: the same jobs to the same sink, 64 in flight; and with as many others as drain_size has."""
    why = missing()
    if why:
        print(f"graphile-worker is left out: {why}", flush=True)
        return
    tasks = {"plain": bench.count(20_000), "batched": bench.count(100_000)}
    bench.space(bench.tasks, "PostgreSQL")
    with Postgres(bench) as db:
        version = db.sql("SHOW server_version").split()[0]
        node("node_modules/graphile-worker/dist/cli.js", "-c", db.dsn, "--schema-only")
        for where, fill in (("", None), (f" beside {bench.tasks + bench.tasks // 10:,}", fill_peer)):
            if fill:
                fill(bench, db)
            ours, bare, peer = [], [], {"plain": [], "batched": []}
            for _ in range(bench.runs):
                for mode, rates in peer.items():
                    rates.append(drain_peer(bench, db, mode, tasks[mode]))
                with Sink(bench) as sink, Server(bench, sink.port) as server:
                    ours.append(server.drain(tasks["batched"]))
                bare.append(bare_curl(bench))
            bench.report(f"graphile-worker, drain{where}", f"{middle(peer['plain']):,.0f}/s; batched {middle(peer['batched']):,.0f}/s", "",
                         f"Backstop, empty store: {middle(ours):,.0f}/s; bare curl loop: {middle(bare):,.0f}/s; PostgreSQL {version}")


WORKS = [graphile]
