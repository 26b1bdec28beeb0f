"""kill -9 in loops against the real program while clients submit and a shop answers well and badly; then a checker.

CASE 18 is the first rule: whatever was answered with success is there after the kills. The shop logs every call and never de-duplicates. The rules (each is one TAP line): everything accepted is finished or with a person;
per key the fences strictly grow; two calls of one key never overlap unless the first's lease had run out; repeated calls are at most
the leases that stood at the kills; in the looked-up queue each order has exactly one effect; a host never has more calls at once than it
takes, a queue no more starts than its rate; an endpoint that answers 404 for a while is left alone behind its breaker and costs no task its
budget; a receiver hears of each alert, whatever was killed; finished tasks are archived from under the kills (not purged: the configuration
allows that after 30 days at the earliest) and are still known; figures equal the rows; the store is sound."""
import http.server
import json
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
HOST_LIMIT, RATE = 2, 30
BREAKER_TRIPS, AWAY_CONCURRENCY = 3, 4
MIX = ["ok"] * 12 + ["slow:0.2"] * 4 + ["lost"] * 2 + ["drop", "fail", "status:503", "status:500", "odd", "hang"]


class Clients:
    """Submit until told to stop; a submission is repeated until it is answered, under the same request id."""

    def __init__(self, server, token, seed, threads=4):
        self.server, self.token, self.stop, self.lock, self.accepted = server, token, threading.Event(), threading.Lock(), {}
        self.bodies = {}
        self.threads = [threading.Thread(target=self.run, args=(k, random.Random(seed + k)), daemon=True) for k in range(threads)]
        for t in self.threads:
            t.start()

    def run(self, k, rng):
        n = 0
        while not self.stop.is_set():
            n += 1
            name = f"{k}-{n}"
            kind = rng.choice(("LOOKED", "PLAIN", "STEADY") * 3 + ("LIMITED", "AWAY"))
            self.submit(submission(name, biz_type=kind, amount=n, currency="CNY"))
            time.sleep(rng.random() * 0.02)

    def submit(self, body):
        while True:
            try:
                reply = Client(self.server.port, self.token, timeout=5).post("/v1/tasks", body)
                if reply.status in (200, 201):
                    with self.lock:
                        self.accepted[body["request_id"]] = reply.json["task_no"]
                        self.bodies[body["request_id"]] = body
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
    """Behaves at random in LOOKED and PLAIN; well in STEADY, where every repeated call was caused by a kill; AWAY answers 404 now and then."""

    def __init__(self, seed):
        super().__init__()
        self.rng, self.calm, self.began = random.Random(seed), False, time.time()

    def next_behaviour(self, order_no, path):
        with self.lock:
            if path == "/away":
                return "status:404" if not self.calm and (time.time() - self.began) % 8 < 5 else "ok"
            if self.calm or path in ("/steady", "/limited"):
                return "slow:0.05" if self.rng.random() < 0.3 else "ok"
            return self.rng.choice(MIX)


class Receiver:
    """Takes alerts, but for some; what it answered with 204 it has heard."""

    def __init__(self, seed):
        self.rng, self.heard, self.calm, self.lock = random.Random(seed), [], False, threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                alerts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]
                with outer.lock:
                    status = 204 if outer.calm or outer.rng.random() < 0.7 else 500
                    outer.heard += [(int(a["id"]), a["phase"], status) for a in alerts]
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a sender that is killed is part of the show
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def rows(server, sql):
    db = sqlite3.connect(f"file:{server.store}?mode=ro", uri=True, timeout=10)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def play(seed):
    shop = Randomly(seed)
    with shop, Shop() as small, Receiver(seed) as receiver:
        server = Server(queues(shop, small), extra=f"""hosts:
  "127.0.0.1:{small.port}": {{ concurrency: {HOST_LIMIT} }}
history: {{ archive_after: 1s }}
alerts:
  check_every: 200ms
  group_wait: 100ms
  webhooks:
    ops: {{ url: "{receiver.url}", secret: none, timeout: 1s }}
""")
        with server:
            clients = Clients(server, server.token(), seed)
            shop.orders = Orders()
            kills, leased = kill_in_loops(server, random.Random(seed))
            clients.end()
            shop.calm = receiver.calm = True
            settle(server)
            server.stop()
            time.sleep(1.1)  # the last ones are old enough for history
            server.start()
            known = ask_again(server, clients)
            until_told(server)
            server.stop()
            findings = check(server, shop, clients.accepted, leased)
            findings.update(check_protection(server, shop, small, kills))
            findings.update(check_alerts(server, receiver))
            findings["what is in history is still known by its request_id"] = known
            findings["figures equal the rows"] = rows(server, FIGURES)
            findings["check-store finds nothing"] = [] if server.cli("check-store", check=False)[0] == 0 else [server.cli("check-store", check=False)]
            past = rows(server, "SELECT count(*) FROM task_history")[0][0]
        print(f"## seed {seed}: {len(kills)} kills, {len(clients.accepted)} accepted, {len(shop.calls) + len(small.calls)} calls, {past} archived, "
              f"{len(receiver.heard)} alerts told, {leased} leases stood at the kills")
        return findings


def queues(shop, small):
    common = {"lease": f"{LEASE:.0f}s", "call_timeout": "1s", "connect_timeout": "500ms", "concurrency": 8,
              "retry": "{ delays: [100ms, 300ms], jitter: 20% }", "max_retry_count": 30}
    looked = {**common, "order_check": f'{{ url: "{shop.url}/orders/{{order_no}}", timeout: 500ms }}', "order_not_found_grace": "1s"}
    return (queue(shop, "LOOKED", "/looked", **looked) + queue(shop, "PLAIN", "/plain", **common) + queue(shop, "STEADY", "/steady", **common)
            + queue(small, "LIMITED", "/limited", **{**common, "rate": f"{RATE}/s"})
            + queue(shop, "AWAY", "/away", **{**common, "concurrency": AWAY_CONCURRENCY, "max_retry_count": 2}))


def kill_in_loops(server, rng):
    """Gives when each kill was, and how many leases of STEADY stood at them."""
    leased, kills = 0, []
    while len(kills) < KILLS:
        time.sleep(6.0 if rng.random() < 0.1 else rng.random() * 1.2)
        server.kill()
        kills.append(time.time())
        leased += rows(server, "SELECT count(*) FROM task WHERE task_status = 'PROCESSING' AND biz_type = 'STEADY'")[0][0]
        if rng.random() < 0.2:  # killed again while it starts
            server.start(wait=False)
            time.sleep(rng.random() * 0.15)
            server.kill()
            kills.append(time.time())
        server.start()
    return kills, leased


class Orders(dict):
    """The shop's own order rows; the look-up is exact: an order is there from the start, finished once it has an effect."""

    def get(self, key, default=None):
        return super().get(key, {"verdict": "go_on"})


def ask_again(server, clients):
    """Some of the accepted come again: the same task answers, wherever it is now."""
    end = time.monotonic() + 30
    while not rows(server, "SELECT 1 FROM task_history LIMIT 1") and time.monotonic() < end:
        time.sleep(0.1)
    wrong, client = [], Client(server.port, clients.token)
    for request_id in list(clients.accepted)[::max(1, len(clients.accepted) // 100)]:
        reply = client.post("/v1/tasks", clients.bodies[request_id])
        if reply.status != 200 or reply.json["task_no"] != clients.accepted[request_id]:
            wrong.append((request_id, reply.status, reply.raw[:200]))
    return wrong


def until_told(server, limit=60):
    end = time.monotonic() + limit
    while time.monotonic() < end and rows(server, """SELECT 1 FROM alert_delivery WHERE state = 'pending' UNION ALL
            SELECT 1 FROM alert_event WHERE unplanned <> 0 OR (open = 1 AND kind = 'breaker')"""):
        time.sleep(0.2)


def settle(server, limit=150):
    end = time.monotonic() + limit
    open_states = "task_status NOT IN ('SUCCESS', 'CLOSED', 'MANUAL')"
    while time.monotonic() < end:
        if rows(server, f"SELECT count(*) FROM task WHERE {open_states}")[0][0] == 0:
            return
        time.sleep(0.2)


ALL = "SELECT * FROM task UNION ALL SELECT * FROM task_history"
FIGURES = f"""SELECT biz_type, task_status, sum(n), sum(amount), sum(unknown) FROM (
    SELECT biz_type, task_status, currency, n, amount, unknown FROM queue_stat
    UNION ALL SELECT biz_type, task_status, coalesce(currency, ''), -1, -coalesce(amount, 0), -outcome_unknown FROM ({ALL}))
    GROUP BY biz_type, task_status, currency HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(unknown) <> 0"""


def lives(calls, kills):
    """The calls of each life of the process."""
    found = {}
    for c in calls:
        found.setdefault(sum(k <= c["start"] for k in kills), []).append(c)
    return [sorted(life, key=lambda c: c["start"]) for life in found.values()]


def check_protection(server, shop, small, kills):
    """The shop's clock is a thread's: 50 ms and a tenth more are no finding."""
    found = {"a host never has more calls at once than it takes": [], "a queue starts no more than its rate": [],
             "an endpoint behind its breaker is left alone": [], "an endpoint that was away costs no task its budget": []}
    posts = [c for c in small.calls if c["method"] == "POST"]
    for life in lives(posts, kills):
        for i, c in enumerate(life):
            at_once = [o for o in life[:i] if o.get("end", float("inf")) > c["start"] + 0.05]
            if len(at_once) >= HOST_LIMIT:
                found["a host never has more calls at once than it takes"].append((c["start"], len(at_once) + 1))
            within = [o for o in life[:i] if o["start"] > c["start"] - 1.0]
            if len(within) + 1 > RATE * 1.1 + 1:
                found["a queue starts no more than its rate"].append((c["start"], len(within) + 1))
    for life in lives([c for c in shop.calls if c.get("path") == "/away" and c["behaviour"] == "status:404"], kills):
        most = BREAKER_TRIPS + AWAY_CONCURRENCY + (life[-1]["start"] - life[0]["start"]) / 4.5
        if len(life) > most:
            found["an endpoint behind its breaker is left alone"].append((len(life), most))
    found["an endpoint that was away costs no task its budget"] = rows(
        server, f"""SELECT request_id, task_status, manual_code, retry_count FROM ({ALL})
            WHERE biz_type = 'AWAY' AND (retry_count > 0 OR (task_status <> 'SUCCESS' AND manual_code IS NOT 'WORKER_LOST'))""")
    return found


def check_alerts(server, receiver):
    taken = {(no, phase) for no, phase, status in receiver.heard if status == 204}
    first = {}
    for n, (no, phase, _) in enumerate(receiver.heard):
        first.setdefault((no, phase), n)
    breakers = rows(server, "SELECT id, open FROM alert_event WHERE kind = 'breaker'")
    return {
        "each alert is told": [no for (no,) in rows(server, "SELECT id FROM alert_event") if (no, "raised") not in taken],
        "the breaker had its alert, and each ended and was told": [b for b in breakers if b[1] or (b[0], "recovered") not in taken] or
                                                                 ([] if breakers else ["no breaker opened"]),
        "nobody hears of an end before the begin": [no for no, phase in first if phase == "recovered" and
                                                    first.get((no, "raised"), float("inf")) > first[no, phase]],
    }


def check(server, shop, accepted, leased):
    stored = {r[0]: r[1:] for r in rows(server, f"SELECT request_id, id, task_status, biz_type, manual_code FROM ({ALL})")}
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
