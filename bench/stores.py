"""Stores with many tasks, built once a run the way users build them: batches over HTTP, calls to a sink, a stop."""
import os
import sqlite3
import time

from kit import Server, Sink, wait_until

BLOCKED_ORDER = "O-BLOCKED"


class Store:
    def __init__(self, path, token, tasks, took):
        self.path, self.token, self.tasks, self.took = path, token, tasks, took


def ask(path, sql):
    """One value from a store, read beside its server."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchone()[0]
    finally:
        db.close()


def blocked(path):
    return ask(path, "SELECT count(*) FROM task WHERE blocked_key IS NOT NULL")


def block(server, queue, n, first):
    """`n` due tasks of `queue` whose order a hanging call of HOLD works on: they are looked at once and set aside."""
    server.load(1, 1, "ordered", 1, "HOLD", "0s", order=BLOCKED_ORDER, first=first)
    wait_until(lambda: server.counts("HOLD").get("PROCESSING"), 30, lambda: f"the holder does not run: {server.log_end()}")
    server.load(4, n, "ordered", 1000, queue, "0s", order=BLOCKED_ORDER, first=first + 1)
    wait_until(lambda: blocked(server.path) >= n, 600, lambda: f"only {blocked(server.path)} of {n} tasks are blocked", 0.2)


def build(bench, name, shape="ordered", finished=0, later=0, held=0):
    """A store with `finished` tasks, `later` not yet due, `held` blocked: made once, then copied."""
    if name in bench.stores:
        return bench.stores[name]
    total, folder, began = finished + later + held, f"{bench.folder}/{name}", time.monotonic()
    bench.space(2 * total, f"a store of {total:,} tasks and its copies")
    print(f"… a store of {finished:,} finished, {later:,} not yet due, {held:,} blocked tasks, request ids {shape}", flush=True)
    os.mkdir(folder)
    with Sink(bench) as sink, Server(bench, sink.port, folder=folder) as server:
        if finished:
            server.load(4, finished, shape, 1000, delay="0s")
            server.wait_done(finished)
        if later:
            server.load(4, later, shape, 1000, first=finished)
        if held:
            block(server, "PAY_CALLBACK", held, finished + later)
    server.cli("check-store")
    store = Store(server.path, server.token, total, time.monotonic() - began)
    print(f"… built and checked in {store.took:.0f} s, {os.stat(store.path).st_size / (1 << 20):,.0f} MiB", flush=True)
    bench.stores[name] = store
    return store


def million(bench, shape):
    return build(bench, f"million-{shape}", shape, bench.tasks // 2, bench.tasks - bench.tasks // 2)


def big(bench):
    return build(bench, "big", "ordered", bench.tasks, bench.tasks, bench.tasks // 10)
