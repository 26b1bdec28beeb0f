"""Does one queue suffer from the others?"""
import tempfile
import time

from kit import Server, Sink, middle, wait_until
from stores import block

QUEUE = '{name}: {{{{ handler: "http://127.0.0.1:{{sink}}{path}", secret: bench, order_check: none, concurrency: 32 }}}}'
OTHERS = ("HANGS", "FLOODS", "BLOCKED")


def queues(path):
    """The four queues; HEALTHY and FLOODS answer at `path`."""
    return [QUEUE.format(name=n, path=p) for n, p in (("HANGS", "/hang/"), ("FLOODS", path), ("BLOCKED", "/pay"), ("HEALTHY", path))]


def fill(bench, folder):
    """The three others: 1,000,000 due tasks, 10,000 whose calls hang, 100,000 blocked. They are left paused."""
    flood, stuck, held = bench.tasks, bench.count(10_000), bench.count(100_000)
    bench.space(2 * flood, f"a queue of {flood:,} tasks")
    print(f"… {flood:,} due tasks, {stuck:,} whose calls hang, {held:,} blocked", flush=True)
    with Sink(bench) as sink, Server(bench, sink.port, queues=queues("/pay"), folder=folder) as server:
        for queue in OTHERS[:2]:
            server.switch(queue, False)
        server.load(4, flood, "ordered", 1000, "FLOODS", "0s")
        server.load(4, stuck, "ordered", 1000, "HANGS", "0s", first=100_000_000)
        block(server, "BLOCKED", held, 200_000_000)
        for queue in OTHERS[2:]:
            server.switch(queue, False)
    return flood


def alone(bench, path, tasks):
    with Sink(bench) as sink, Server(bench, sink.port, queues=queues(path)) as server:
        return server.drain(tasks, "HEALTHY", first=300_000_000)


def beside(bench, path, tasks, folder, first):
    """The healthy queue's rate, the flood's in the same time, the server's memory."""
    with Sink(bench) as sink, Server(bench, sink.port, queues=queues(path), folder=folder) as server:
        for queue in OTHERS:
            server.switch(queue, True)
        wait_until(lambda: server.counts("HANGS").get("PROCESSING") == 32, 60, lambda: f"the hanging calls are not there: {server.counts('HANGS')}")
        server.fill(tasks, "HEALTHY", first=first)
        flood, began = server.done("FLOODS"), time.monotonic()
        rate = server.settle(tasks, "HEALTHY")
        flooded = (server.done("FLOODS") - flood) / (time.monotonic() - began)
        if not server.counts("FLOODS").get("WAITING"):
            raise SystemExit("the flood ended before the measurement did")
        for queue in OTHERS:
            server.switch(queue, False)
        return rate, flooded, server.memory_mib()


def fair(bench):
    """A healthy queue alone, and beside one that hangs, one with 1,000,000 due tasks and one with 100,000 blocked."""
    tasks, folder, first = bench.count(20_000), tempfile.mkdtemp(dir=bench.folder), 300_000_000
    flood = fill(bench, folder)
    for path, aim, what in (("/d10/", "≥ 95 % of alone", "handlers take 10 ms"), ("/pay", "", "handlers answer at once")):
        own, shared, flooded, memory = [], [], [], 0
        for _ in range(bench.runs):
            own.append(alone(bench, path, tasks))
            first += tasks
            rate, other, mib = beside(bench, path, tasks, folder, first)
            shared.append(rate)
            flooded.append(other)
            memory = max(memory, mib)
        ratio, share = middle([s / o for s, o in zip(shared, own)]), middle([s / (s + f) for s, f in zip(shared, flooded)])
        bench.report(f"a healthy queue beside three, {what}", f"{middle(shared):,.0f}/s, {ratio:.0%} of alone", aim,
                     f"alone: {middle(own):,.0f}/s; the flood of {flood:,} meanwhile {middle(flooded):,.0f}/s, so {share:.0%} of both; {memory:.0f} MiB")


WORKS = [fair]
