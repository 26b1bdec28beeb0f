"""kill -9 in loops against the real program while clients submit and a shop answers well and badly; then a checker.

CASE 18 is the first rule: whatever was answered with success is there after the kills. The shop logs every call and never de-duplicates. The rules (each is one TAP line): everything accepted is finished or with a person;
per key the fences strictly grow; two calls of one key never overlap unless the first's lease had run out; repeated calls are at most
the leases that stood at the kills; in the looked-up queue each order has exactly one effect; the store is sound."""
import os
import random
import sqlite3
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from harness import FULL, SUBSET, Client, Server, Shop, queue, submission  # noqa: E402

ACCEPTED = "CASE 18: everything answered with success is finished or with a person"
LEASE = 3.0
KILLS = 6 if SUBSET else 40 if FULL else 20
ACCEPTED_LEAST = 30 if SUBSET else 1000 if FULL else 300
ENOUGH = f"at least {ACCEPTED_LEAST} tasks were accepted and a lease stood at a kill, or the rules would speak of nothing"
MIX = ["ok"] * 12 + ["slow:0.2"] * 4 + ["lost"] * 2 + ["drop", "fail", "status:503", "status:500", "odd", "hang"]


class Clients:
    """Submit until told to stop; a submission is repeated until it is answered, under the same request id."""

    def __init__(self, server, token, seed, threads=4):
        self.server, self.token, self.stop, self.lock, self.accepted = server, token, threading.Event(), threading.Lock(), {}
        self.threads = [threading.Thread(target=self.run, args=(k, random.Random(seed + k)), daemon=True) for k in range(threads)]
        for t in self.threads:
            t.start()

    def run(self, k, rng):
        n = 0
        while not self.stop.is_set():
            n += 1
            name = f"{k}-{n}"
            kind = rng.choice(("LOOKED", "PLAIN", "STEADY"))
            self.submit(submission(name, biz_type=kind, amount=n, currency="CNY"))
            time.sleep(rng.random() * 0.02)

    def submit(self, body):
        while True:
            try:
                reply = Client(self.server.port, self.token, timeout=5).post("/v1/tasks", body)
                if reply.status in (200, 201):
                    with self.lock:
                        self.accepted[body["request_id"]] = reply.json["task_no"]
                    return
            except OSError:
                pass
            except Exception:  # a reply cut in the middle is a reply lost
                pass
            time.sleep(0.02)

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(30)


class Randomly(Shop):
    """Behaves at random in LOOKED and PLAIN; well in STEADY, where every repeated call was caused by a kill."""

    def __init__(self, seed):
        super().__init__()
        self.rng, self.calm = random.Random(seed), False

    def next_behaviour(self, order_no, path):
        with self.lock:
            if self.calm or path == "/steady":
                return "slow:0.05" if self.rng.random() < 0.3 else "ok"
            return self.rng.choice(MIX)


def rows(server, sql):
    db = sqlite3.connect(f"file:{server.store}?mode=ro", uri=True, timeout=10)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def play(seed):
    rng, shop = random.Random(seed), Randomly(seed)
    with shop:
        common = {"lease": f"{LEASE:.0f}s", "call_timeout": "1s", "connect_timeout": "500ms", "concurrency": 8,
                  "retry": "{ delays: [100ms, 300ms], jitter: 20% }", "max_retry_count": 30}
        server = Server(queue(shop, "LOOKED", "/looked", **{**common, "order_check": f'{{ url: "{shop.url}/orders/{{order_no}}", timeout: 500ms }}',
                                                           "order_not_found_grace": "1s"})
                        + queue(shop, "PLAIN", "/plain", **common) + queue(shop, "STEADY", "/steady", **common))
        with server:
            clients = Clients(server, server.token(), seed)
            shop.orders = Orders()
            leased, kills = 0, 0
            while kills < KILLS:
                time.sleep(rng.random() * 1.2)
                server.kill()
                kills += 1
                leased += rows(server, "SELECT count(*) FROM task WHERE task_status = 'PROCESSING' AND biz_type = 'STEADY'")[0][0]
                if rng.random() < 0.2:  # killed again while it starts
                    server.start(wait=False)
                    time.sleep(rng.random() * 0.15)
                    server.kill()
                    kills += 1
                server.start()
            clients.end()
            shop.calm = True
            settle(server)
            server.stop()
            findings = check(server, shop, clients.accepted, leased)
            findings["check-store finds nothing"] = [] if server.cli("check-store", check=False)[0] == 0 else [server.cli("check-store", check=False)]
        print(f"## seed {seed}: {kills} kills, {len(clients.accepted)} accepted, {len(shop.calls)} calls, {leased} leases stood at the kills")
        return findings


class Orders(dict):
    """The shop's own order rows; the look-up is exact: an order is there from the start, finished once it has an effect."""

    def get(self, key, default=None):
        return super().get(key, {"verdict": "go_on"})


def settle(server, limit=150):
    end = time.monotonic() + limit
    open_states = "task_status NOT IN ('SUCCESS', 'CLOSED', 'MANUAL')"
    while time.monotonic() < end:
        if rows(server, f"SELECT count(*) FROM task WHERE {open_states}")[0][0] == 0:
            return
        time.sleep(0.2)


def check(server, shop, accepted, leased):
    stored = {r[0]: r[1:] for r in rows(server, "SELECT request_id, id, task_status, biz_type, manual_code FROM task")}
    calls = {}
    for c in shop.calls:
        if c["method"] == "POST":
            calls.setdefault(c["key"], []).append(c)
    found = {name: [] for name in (ACCEPTED, "nothing runs that was not accepted or repeated",
                                   "per key the fences strictly grow", "two calls of one key never overlap within a lease",
                                   "calls repeated by kills are at most the leases that stood", "one effect per order in the looked-up queue",
                                   "no token or attempt went back")}
    found[ENOUGH] = [(len(accepted), leased)] if len(accepted) < ACCEPTED_LEAST or leased < 1 else []
    for key, no in accepted.items():
        if key not in stored or str(stored[key][0]) != no or stored[key][1] not in ("SUCCESS", "MANUAL", "CLOSED"):
            found[ACCEPTED].append((key, no, stored.get(key)))
    for key, made in calls.items():
        made.sort(key=lambda c: c["start"])
        fences = [c["fence"] for c in made]
        if any(a >= b for a, b in zip(fences, fences[1:])):
            found["per key the fences strictly grow"].append((key, fences))
        attempts = [c["attempt"] for c in made]
        if any(a >= b for a, b in zip(attempts, attempts[1:])):
            found["no token or attempt went back"].append((key, attempts))
        for a, b in zip(made, made[1:]):
            if b["start"] < a.get("end", float("inf")) and b["start"] < a["start"] + LEASE - 1.0 and a["behaviour"] != "hang":
                found["two calls of one key never overlap within a lease"].append((key, a["start"], b["start"], a.get("end")))
        if key not in stored:
            found["nothing runs that was not accepted or repeated"].append(key)
    repeated = sum(len(made) - 1 for made in calls.values() if made[0]["path"] == "/steady")
    if repeated > leased:
        found["calls repeated by kills are at most the leases that stood"].append((repeated, leased))
    for order_no, order in shop.orders.items():
        key = "req-" + order_no[len("order-"):]
        if stored.get(key, (0, 0, ""))[2] == "LOOKED" and order.get("effects", 0) != 1:
            found["one effect per order in the looked-up queue"].append((order_no, order, stored[key]))
    for key, (no, status, biz_type, code) in stored.items():
        if biz_type == "LOOKED" and status == "SUCCESS" and "order-" + key[4:] not in shop.orders:
            found["one effect per order in the looked-up queue"].append((key, "finished without an effect"))
    return found


def main():
    seed = int(os.environ.get("BACKSTOP_SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"## seed {seed} (BACKSTOP_SEED repeats the schedule)")
    findings, failed = play(seed), 0
    print(f"1..{len(findings)}")
    for n, (name, problems) in enumerate(findings.items(), 1):
        failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {n} - {name}")
        for p in problems[:5]:
            print(f"#   {p!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
