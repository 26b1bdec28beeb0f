"""Figures on stores with a million tasks and more."""
import os
import shutil
import sqlite3
import tempfile
import time

from empty import bare_curl, pickup_of, submit_at
from kit import Server, Sink, middle, wait_until
from stores import big, blocked, million


def size(bench):
    """submit64, submit512 and batch on a store of 1,000,000 tasks: half finished, half not yet due, keys of the same shape."""
    for connections, per_batch, tasks, aims, share, per in (
            (64, 1, bench.count(200_000), {"ordered": 14_000, "random": 7_000}, 45, 40),
            (512, 1, bench.count(200_000), {"ordered": 20_000, "random": 10_000}, 45, 40),
            (4, 1000, bench.count(400_000), {"ordered": 45_000, "random": 18_000}, 70, 1000)):
        submit_at(bench, connections, per_batch, tasks, aims, share, per, lambda shape: million(bench, shape), f" to {bench.tasks:,}")


def drain_of(bench, tasks, store=None):
    """Tasks a second, the process's peak memory in MiB."""
    held = blocked(store.path) if store else 0
    with Sink(bench) as sink, Server(bench, sink.port, store=store) as server:
        rate = server.drain(tasks, first=500_000_000)
        if sink.figures()[1] != tasks or blocked(server.path) != held:
            raise SystemExit(f"the sink answered {sink.figures()[1]} calls for {tasks} tasks; {blocked(server.path)} of {held} are blocked")
        return rate, server.memory_mib("VmHWM")


def drain_size(bench):
    """Drain and pick-up with 1,000,000 not yet due, 1,000,000 finished and 100,000 blocked tasks, each beside an empty store."""
    store, tasks, full, empty, bare, memory = big(bench), bench.count(100_000), [], [], [], 0
    for _ in range(bench.runs):
        bare.append(bare_curl(bench))
        empty.append(drain_of(bench, tasks)[0])
        rate, peak = drain_of(bench, tasks, store)
        full.append(rate)
        memory = max(memory, peak)
    ratio = middle([f / e for f, e in zip(full, empty)])
    bench.report(f"drain {tasks:,} beside {store.tasks:,}", f"{middle(full):,.0f}/s", "≥ 90 % of empty",
                 f"empty store: {middle(empty):,.0f}/s, ratio {ratio:.0%}; bare curl loop: {middle(bare):,.0f}/s")
    bench.report(f"memory, draining beside {store.tasks:,}", f"{memory:.1f} MiB at most", "≤ 80 MB")
    here, there = pickup_of(bench), pickup_of(bench, store)
    bench.report(f"pick-up, idle, beside {store.tasks:,}", f"p50 {there['p50_ms']:.2f} ms, p99 {there['p99_ms']:.2f} ms", "as when empty",
                 f"empty store: p50 {here['p50_ms']:.2f} ms, p99 {here['p99_ms']:.2f} ms")


def forget(path):
    """The file leaves the page cache, as after a reboot."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def begin(server):
    began = time.monotonic()
    server.start(wait=False)
    wait_until(server.ready, 120, lambda: f"no start: {server.log_end()}", 0.001)
    return 1e3 * (time.monotonic() - began)


def start(bench):
    """exec → /readyz on a store of 2,000,000 tasks, its file in the page cache and not; memory with 1,000,000 of them waiting."""
    store, warm, cold, memory = big(bench), [], [], []
    with Server(bench, store=store) as server:
        for _ in range(bench.runs):
            server.stop()
            warm.append(begin(server))
            server.stop()
            forget(server.path)
            cold.append(begin(server))
            for path in ("/v1/stats", "/v1/queues", "/v1/tasks?status=WAITING&limit=200", "/v1/tasks?limit=200"):
                server.api(path)
            time.sleep(5)
            memory.append(server.memory_mib())
        waiting = server.counts()["WAITING"]
    bench.report(f"start on {store.tasks:,} tasks", f"{middle(warm):.0f} ms; not in the page cache {middle(cold):.0f} ms", "≤ 1,000 ms", "exec → /readyz 200")
    bench.report(f"memory with {waiting:,} waiting", f"{max(memory):.1f} MiB", "≤ 80 MB", "after lists and figures were read")


def shares(path, tasks):
    """Bytes a task of each table and index, the greatest first; what is below a hundredth is one."""
    db = sqlite3.connect(path)
    rows = db.execute("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE ORDER BY 2 DESC").fetchall()
    db.close()
    whole = sum(size for _, size in rows)
    great = [(name, size / tasks) for name, size in rows if size > whole / 100]
    return great + [("all others", (whole / tasks - sum(size for _, size in great)))]


def stopped_file(bench, tasks, shape, finished):
    """The file of a stopped server (its log is then moved into it), with `tasks` tasks."""
    folder = tempfile.mkdtemp(dir=bench.folder)
    with Sink(bench) as sink, Server(bench, sink.port, folder=folder) as server:
        if finished:
            server.drain(tasks)
        else:
            server.load(4, tasks, shape, 1000)
    return server.path


def disk(bench):
    """Bytes on the disk for a submitted and for a finished task, and what takes them (SQLite's dbstat)."""
    tasks = bench.count(200_000)
    for work, shape, finished in (("submitted, ordered", "ordered", False), ("submitted, random", "random", False), ("finished, ordered", "ordered", True)):
        path = stopped_file(bench, tasks, shape, finished)
        each = os.stat(path).st_size / tasks
        bench.report(f"disk for a task {work}", f"{each:,.0f} bytes, 500 of them payload", "stated", f"{tasks:,} tasks")
        print("    " + ", ".join(f"{name} {size:,.0f}" for name, size in shares(path, tasks)), flush=True)
        shutil.rmtree(os.path.dirname(path))


WORKS = [size, drain_size, start, disk]
