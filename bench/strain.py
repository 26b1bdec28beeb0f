"""What must stay good while something else happens: maintenance, long traffic, a crash."""
import json
import os
import subprocess
import sys
import time

from kit import Server, Sink, wait_until
from stores import ask, million

READER = """
import sqlite3, sys, time
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
db.execute("BEGIN")
n = db.execute("SELECT count(*) FROM task").fetchone()[0]
time.sleep(float(sys.argv[2]))
assert db.execute("SELECT count(*) FROM task").fetchone()[0] == n
"""
AT_ONCE = "history: {{ archive_after: {} }}\n"


class Load:
    """The load generator in the background, a line of figures for each part of it."""

    def __init__(self, server, connections, tasks, delay="300d", **options):
        args = server.load_args(connections, tasks, delay=delay, options=options)
        self.process = subprocess.Popen(server.bench.command("load", *args), text=True, stdout=subprocess.PIPE)

    def next(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def whole(self):
        parts = []
        while line := self.next():
            parts.append(line)
        if self.process.wait(60) or not parts:
            raise SystemExit(f"load failed: {parts}")
        return parts[-1], parts[:-1]


def backup(server):
    """Seconds that `backstop backup` takes while serving, and the copy's MiB."""
    target, began = f"{server.folder}/copy.db", time.monotonic()
    server.cli("backup", target)
    took, size = time.monotonic() - began, os.stat(target).st_size / (1 << 20)
    os.remove(target)
    return took, size


def busy_run(bench, store, seconds, rate, others):
    """Submits for so long, with or without archive pass, backup and reader beside it."""
    with Server(bench, store=store, more=AT_ONCE.format("1s" if others else "never")) as server:
        options = {"rate": rate} if rate else {}
        load = Load(server, 64, 40_000 * int(seconds + 10), seconds=seconds, first=700_000_000, every=1, **options)
        found = {}
        if others:
            time.sleep(min(2, seconds / 10))
            reader = subprocess.Popen([sys.executable, "-c", READER, server.path, str(seconds * 0.85)])
            time.sleep(min(3, seconds / 10))
            found["backup"], found["mib"] = backup(server)
            if reader.wait():
                raise SystemExit("the reader did not keep its snapshot")
        whole, parts = load.whole()
        found.update(whole, worst=max(p["p99_ms"] for p in parts), wal=server.wal_mib(), archived=ask(server.path, "SELECT count(*) FROM task_history"))
    return found


def busy(bench):
    """submit p99 on 1,000,000 tasks while an archive pass, a backup and a reader of 60 s run; beside it the same without them."""
    store, seconds = million(bench, "ordered"), 70 if bench.tasks >= 1_000_000 else 15
    bench.space(4 * bench.tasks, "the store, what comes, its log and a copy")
    for rate in (0, 5000):
        alone, got = busy_run(bench, store, 20 if bench.tasks >= 1_000_000 else 5, rate, False), busy_run(bench, store, seconds, rate, True)
        bench.report(f"submit, 64 conn., {f'{rate:,}/s' if rate else 'full speed'}, all at once",
                     f"{got['per_second']:,.0f}/s, p99 {got['p99_ms']:.1f} ms, worst second's p99 {got['worst']:.0f} ms", "p99 ≤ 60 ms",
                     f"without: {alone['per_second']:,.0f}/s, p99 {alone['p99_ms']:.1f} ms; archived {got['archived']:,}, "
                     f"backup {got['mib']:,.0f} MiB in {got['backup']:.1f} s, reader {seconds * 0.85:.0f} s, log {got['wal']:,.0f} MiB")


def thirds(samples, key):
    """The greatest value in the second and in the last third: what grows without bound grows between them."""
    n = len(samples)
    return max(s[key] for s in samples[n // 3:2 * n // 3]), max(s[key] for s in samples[2 * n // 3:])


def mixed(bench):
    """5,000 tasks a second in over 64 connections, all delivered at once, for --minutes, on 1,000,000 tasks: does anything grow?"""
    samples, every = [], 10 if bench.minutes >= 2 else 2
    bench.space(2 * bench.tasks + int(300_000 * bench.minutes), "the store and what comes")
    with Sink(bench) as sink, Server(bench, sink.port, store=million(bench, "ordered")) as server:
        settled = server.done()
        load = Load(server, 64, 10_000 * int(60 * bench.minutes), delay="0s", rate=5000, seconds=60 * bench.minutes, every=every, first=800_000_000)
        while (part := load.next()) and part["seconds"] < 1.5 * every:
            part.update(memory=server.memory_mib(), log=server.wal_mib())
            samples.append(part)
            part["backlog"] = max(sum(p["tasks"] for p in samples) - (server.done() - settled), 0)
            print(f"    {len(samples) * every:>4} s: p99 {part['p99_ms']:6.1f} ms, {part['memory']:5.1f} MiB, log {part['log']:4.0f} MiB, open {part['backlog']:,}", flush=True)
        if load.process.wait(60):
            raise SystemExit("load failed")
        sent = part["tasks"]
        server.wait_done(settled + sent, seconds=60)
    grew = [f"{name} {a:,.0f} → {b:,.0f}" for name, slack in (("memory", 8), ("log", 64), ("backlog", 5000), ("p99_ms", 20))
            for a, b in [thirds(samples, name)] if b > 1.25 * a + slack]
    peak = {k: max(s[k] for s in samples) for k in ("memory", "log", "backlog", "p99_ms")}
    bench.report(f"mixed, 5,000/s in and out, {bench.minutes:g} min", f"{sent:,} tasks, p99 {part['p99_ms']:.1f} ms, at most {peak['memory']:.0f} MiB, "
                 f"log {peak['log']:.0f} MiB, {peak['backlog']:,} open", "nothing grows", "grew: " + ", ".join(grew) if grew else "nothing grew")


def kill(bench, calls=1000, lease=20):
    """kill -9 with 1,000 calls in flight → all its tasks are at the handler again; on 1,000,000 tasks."""
    queue = f'SLOW: {{{{ handler: "http://127.0.0.1:{{sink}}/hang/", secret: bench, order_check: none, concurrency: {calls}, call_timeout: 15s, lease: {lease}s }}}}'
    with Sink(bench) as sink, Server(bench, sink.port, store=million(bench, "ordered"), queues=(queue, )) as server:
        server.load(4, calls, "ordered", 1000, "SLOW", "0s", first=900_000_000)
        wait_until(lambda: sink.figures()[0] >= calls, 14, lambda: f"only {sink.figures()[0]} calls came: {server.log_end()}")
        began = time.monotonic()
        server.kill()
        server.start()
        ready = time.monotonic() - began
        wait_until(lambda: sink.figures()[0] >= 2 * calls, lease + 30, lambda: f"only {sink.figures()[0] - calls} came again: {server.log_end()}", 0.005)
        took = time.monotonic() - began
        running = server.counts("SLOW")
    if running.get("PROCESSING") != calls:
        raise SystemExit(f"not all of them run: {running}")
    bench.report(f"kill -9 with {calls:,} calls in flight", f"all run again after {took:.1f} s", f"≤ lease + 2 s = {lease + 2} s", f"ready again after {ready:.2f} s, its log not yet moved")


WORKS = [busy, mixed, kill]
