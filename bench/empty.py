"""Figures on an empty store."""
import os
import shutil
import subprocess
import tempfile
import time

from kit import Server, Sink, free_port, middle


def submit_at(bench, connections, batch, tasks, aims, share, per, store=lambda shape: None, where=""):
    """POST /v1/tasks in both shapes of request ids; `store(shape)` is copied for each run."""
    for shape in ("ordered", "random"):
        rates, bare, p99 = [], [], []
        for _ in range(bench.runs):
            with Server(bench, store=store(shape)) as server:
                got = server.load(connections, tasks, shape, batch, first=100_000_000)
            rates.append(got["per_second"])
            p99.append(got["p99_ms"])
            bare.append(bench.bare_sqlite(tasks, per, shape, store(shape)))
        ratio = middle([r / b for r, b in zip(rates, bare)])
        work = f"submit{where}, {connections} conn., {'batch of ' + str(batch) + ', ' if batch > 1 else ''}{shape}"
        bench.report(work, f"{middle(rates):,.0f}/s, p99 {middle(p99):.1f} ms", f"≥ {aims[shape]:,}/s" + (", p99 ≤ 25 ms" if connections == 64 else ""),
                     f"bare loop at {per}: {middle(bare):,.0f}/s, ratio {ratio:.0%}" + (f" (aim ≥ {share}%)" if share else ""))


def submit64(bench):
    """POST /v1/tasks over 64 keep-alive connections."""
    submit_at(bench, 64, 1, 200_000, {"ordered": 15_000, "random": 9_000}, 45, 40)


def submit512(bench):
    """The same over 512 connections."""
    submit_at(bench, 512, 1, 200_000, {"ordered": 22_000, "random": 12_000}, 0, 40)


def batch(bench):
    """Batches of 1,000 (NDJSON)."""
    submit_at(bench, 4, 1000, 400_000, {"ordered": 50_000, "random": 24_000}, 70, 1000)


def bare_curl(bench):
    with Sink(bench) as sink:
        return bench.tool("bare_curl", f"http://127.0.0.1:{sink.port}/pay", 200_000, 64)["per_second"]


def drain(bench, tasks=100_000):
    """100,000 due tasks delivered to a local HTTP sink, 64 in flight."""
    rates, bare = [], []
    for _ in range(bench.runs):
        bare.append(bare_curl(bench))
        with Sink(bench) as sink, Server(bench, sink.port) as server:
            rates.append(server.drain(tasks))
            if sink.figures()[1] != tasks:
                raise SystemExit(f"the sink answered {sink.figures()[1]} calls for {tasks} tasks")
    ratio = middle([r / b for r, b in zip(rates, bare)])
    bench.report("drain 100,000, 64 in flight", f"{middle(rates):,.0f}/s", "≥ 14,000/s", f"bare curl loop: {middle(bare):,.0f}/s, ratio {ratio:.0%} (aim ≥ 45%)")


def pickup_of(bench, store=None, count=1000):
    """Percentiles from the start of a submit call to the handler's first byte."""
    port = free_port()
    with Server(bench, port, store=store) as server:
        return bench.tool("pickup", "backstop", server.port, server.token, port, count)


def pickup(bench):
    """Start of the submit call → the handler sees the request, idle server, one at a time."""
    ours = pickup_of(bench)
    peer = "beanstalkd is not installed"
    if shutil.which("beanstalkd") or os.path.exists("/usr/bin/beanstalkd"):
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
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
        bench.report("idle", f"{server.memory_mib():.1f} MiB, {cpu:.2%} of a core", "≤ 25 MB, < 0.5 %", f"over {seconds} s")


WORKS = [submit64, submit512, batch, drain, pickup, idle]
