"""The process: start and refusals, signals, a failing store, a handler that kills the server."""
import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time

from harness import (BACKSTOP, SECRET, Client, Server, Shop, Skip, accepted, equal, eventually, log_of, look_up, main, queue, submission, subset,
                     task, until)


def serve_fails(server, code, *words):
    """The program must refuse to start: exit code and words on stderr."""
    run = subprocess.run([BACKSTOP, "serve", "-c", server.config], capture_output=True, text=True, timeout=60, env={**os.environ, **server.env})
    equal(run.returncode, code, run.stdout + run.stderr)
    for word in words:
        assert word in run.stderr + run.stdout, f"{word!r} is not in:\n{run.stderr}{run.stdout}"


@contextlib.contextmanager
def prepared(queues="", extra=""):
    server = Server(queues, extra)
    try:
        yield server
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


class Nowhere:
    url = "http://127.0.0.1:9"


@subset
def a_lease_that_is_too_short_for_its_call_is_refused_at_start():
    """CASE 40."""
    with prepared(queue(Nowhere, lease="10s", call_timeout="30s")) as server:
        serve_fails(server, 2, "lease", "PAY_CALLBACK", f"{server.config}:")
    with prepared(queue(Nowhere, lease="11s", call_timeout="5s", order_check="{ url: http://127.0.0.1:9/o, timeout: 5s }")) as server:
        serve_fails(server, 2, "lease")


def a_renewed_lease_lets_a_long_call_end_as_one_call():
    """CASE 40: lease 10 s (here 3 s), renew, a call of 2.5 leases: downstream sees one call."""
    with Shop() as shop, Server(queue(shop, lease="3s", renew="true", call_timeout="20s")) as server:
        client = server.client()
        shop.behave("order-1", "slow:7.5")
        done = until(client, accepted(client, submission()), "SUCCESS", limit=30)
        equal((len(shop.calls), done["attempt_no"], done["crash_count"]), (1, 1, 0))


@subset
def a_configuration_error_names_line_key_and_the_nearest_valid_key():
    with prepared() as server:
        for text, words in [
            ("listen: 127.0.0.1:0\nqueues:\n  PAY:\n    handler: http://x/\n    secret: none\n    order_check: none\n    conncurrency: 5\n",
             (":7:", "conncurrency", "concurrency")),
            ("lisen: 127.0.0.1:0\n", (":1:", "lisen", "listen")),
            ("queues:\n  PAY:\n    handler: ftp://x/\n    secret: none\n    order_check: none\n", (":3:", "handler")),
            ("queues:\n  PAY:\n    handler: http://x/\n    order_check: none\n", ("secret", "PAY")),
            ("queues:\n  PAY:\n    handler: http://x/\n    secret: ${NO_SUCH_VARIABLE}\n    order_check: none\n", (":4:", "NO_SUCH_VARIABLE")),
            ("queues:\n  PAY:\n    handler: http://x/\n    secret: none\n", ("order_check", "PAY")),
            ("queues:\n  PAY:\n    handler: http://x/\n    secret: none\n    order_check: none\n    effect: money\n", ("money", "PAY")),
            ("listen: 127.0.0.1:0\nlisten: 127.0.0.1:1\n", (":2:", "listen")),
            ("queues:\n  PAY: [1\n", (":",)),
            ("queues:\n  PAY:\n    handler: http://x/\n    secret: none\n    order_check: none\n    call_timeout: 10\n", (":6:", "call_timeout")),
            ("queues:\n  9PAY:\n    handler: http://x/\n    secret: none\n    order_check: none\n", (":2:", "9PAY")),
        ]:
            with open(server.config, "w", encoding="utf-8") as f:
                f.write(text)
            code, _, err = server.cli("check-config", check=False)
            equal(code, 2, text)
            for word in words:
                assert word in err, f"{word!r} is not in {err!r} for\n{text}"
            assert "Sanitizer" not in err, err


def whoever_opens_connections_leaves_descriptors_for_calls_and_store():
    with Shop() as shop, Server(queue(shop), under=("prlimit", "--nofile=256:256")) as server:
        client = server.client()
        client.get("/v1/version")
        idle = [socket.socket() for _ in range(400)]
        for s in idle:
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", server.port))
        eventually(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) > 128, 10, "the connections")
        done = until(client, accepted(client, submission()), "SUCCESS", "MANUAL")
        equal((done["task_status"], done["retry_count"]), ("SUCCESS", 0))
        for s in idle:
            s.close()


def another_address_than_loopback_needs_a_proxy_in_front():
    with prepared(extra="listen: 0.0.0.0:0\n") as server:
        serve_fails(server, 2, "behind_proxy")
    with Server(extra="listen: 0.0.0.0:0\nbehind_proxy: true\n") as server:
        equal(Client(server.port).get("/healthz").status, 200)


@subset
def a_damaged_a_newer_or_an_already_served_store_is_refused_in_clear_words():
    with prepared(queue(Nowhere)) as server:
        with open(server.store, "wb") as f:
            f.write(b"this is no database at all, only words" * 200)
        serve_fails(server, 3, "backstop.db")
        os.unlink(server.store)
        db = sqlite3.connect(server.store)
        db.execute("CREATE TABLE somebody_elses (x)")
        db.commit()
        db.close()
        serve_fails(server, 3, "backstop.db")
        os.unlink(server.store)
        server.cli("migrate")
        db = sqlite3.connect(server.store)
        db.execute("UPDATE meta SET value = 9999 WHERE name = 'schema_version'")
        db.commit()
        db.close()
        serve_fails(server, 3, "newer")
    with Server(queue(Nowhere)) as server:
        second = Server(queue(Nowhere), extra=f"socket: {server.folder}/second.sock\n", folder=server.folder)
        serve_fails(second, 3, "backstop.db", "in use")
        equal(Client(server.port).get("/healthz").status, 200)


@subset
def a_store_is_served_once_by_whatever_path_it_is_named():
    with Server(queue(Nowhere)) as server:
        os.symlink(server.store, os.path.join(server.folder, "symbolic.db"))
        os.link(server.store, os.path.join(server.folder, "hard.db"))
        for name in ("symbolic.db", "hard.db"):
            second = Server(queue(Nowhere), folder=server.folder)
            second.store, second.config = os.path.join(server.folder, name), os.path.join(server.folder, f"{name}.yaml")
            second.write_config(queue(Nowhere), f"socket: {server.folder}/{name}.sock\n")
            serve_fails(second, 3, name if name == "hard.db" else "backstop.db")
            equal(second.cli("token", "add", f"by-{name}", "--role", "admin", check=False)[0], 3, name)
        os.unlink(os.path.join(server.folder, "hard.db"))
        os.unlink(server.store + ".lock")
        eventually(lambda: os.path.exists(server.store + ".lock"), what="the lock")
        serve_fails(Server(queue(Nowhere), folder=server.folder), 3, "backstop.db")
        accepted(server.client(), submission())


def a_store_under_a_symbolic_link_is_looked_after():
    with prepared(queue(Nowhere)) as server:
        os.mkdir(os.path.join(server.folder, "elsewhere"))
        os.symlink(os.path.join(server.folder, "elsewhere", "real.db"), server.store)
        serve_fails(server, 1, "backstop.db")  # a link to nothing
        os.unlink(server.store)
        server.cli("migrate")
        os.rename(server.store, os.path.join(server.folder, "elsewhere", "real.db"))
        os.symlink(os.path.join(server.folder, "elsewhere", "real.db"), server.store)
        with server:
            accepted(server.client(), submission())
            eventually(lambda: re.search(r"^backstop_wal_bytes [1-9]", Client(server.port).get("/metrics").raw.decode(), re.M),
                       what="the log's size")


@subset
def a_store_whose_files_are_taken_away_takes_no_more():
    """What is written into a file without a name is gone at the end of the process: it is never acknowledged."""
    def removed(server):
        for ending in ("", "-wal", "-shm"):
            os.unlink(server.store + ending)

    def replaced(server):
        db = sqlite3.connect(server.store, timeout=5)
        db.execute(f"VACUUM INTO '{server.store}.copy'")
        db.close()
        os.rename(server.store + ".copy", server.store)

    def without_log(server):
        os.unlink(server.store + "-wal")

    for harm in (removed, replaced, without_log):
        server = Server(queue(Nowhere)).start()
        try:
            client = server.client()
            first = accepted(client, submission("before"))
            harm(server)
            equal(client.post("/v1/tasks", submission("after")).status, 503, harm.__name__)
            eventually(lambda: Client(server.port).get("/readyz").status == 503, what=harm.__name__)
            equal(client.post("/v1/tasks", submission("after")).status, 503, harm.__name__)
            assert any("removed or replaced" in e["message"] for e in server.events("store.failing")), server.log()[-2000:]
            server.kill()
            if harm is without_log:
                server.start()
                task(Client(server.port, client.token), first)
        finally:
            server.kill()
            shutil.rmtree(server.folder, ignore_errors=True)


def later(server, seconds):
    """As if the server had run with a clock that was ahead: everything in its store is that much later."""
    db, us = sqlite3.connect(server.store), int(seconds * 1_000_000)
    for column in ("created_at", "updated_at", "next_execute_at", "due_at", "last_execute_at", "locked_at", "locked_until", "call_until"):
        db.execute(f"UPDATE task SET {column} = {column} + ?", (us,))
    for column in ("at", "claimed_at", "next_at"):
        db.execute(f"UPDATE task_log SET {column} = {column} + ?", (us,))
    db.execute("UPDATE meta SET value = value + ? WHERE name = 'time_high'", (us,))
    for table, column in (("task", "id"), ("task_payload", "task_id"), ("request_key", "task_id"), ("effect_key", "task_id"), ("task_log", "task_id"),
                          ("task_log", "id")):
        db.execute(f"UPDATE {table} SET {column} = {column} + ?", ((us // 1000) << 22,))
    db.commit()
    db.close()


@subset
def a_clock_that_is_set_back_while_the_server_is_down_holds_nothing_up():
    """A lease, a retry and a task that waits for its turn were written three hours ahead; ids, steps and signatures go on."""
    with Shop(secret=SECRET) as shop:
        server = Server(queue(shop, concurrency=1, call_timeout="2s", lease="4s", retry="{ delays: [1s], jitter: 0% }")).start()
        client = server.client()
        shop.behave("order-fails", "fail", "ok")
        shop.behave("order-runs", "hang", "ok")
        names = {"fails": accepted(client, submission("fails"))}
        until(client, names["fails"], "RETRY")
        names["runs"] = accepted(client, submission("runs"))
        shop.wait_for(lambda calls: any(c["order_no"] == "order-runs" for c in calls))
        accepted(client, submission("waits"))
        eventually(lambda: rows(server, "SELECT 1 FROM meta WHERE name = 'time_high'"), what="the noted time")
        server.kill()
        later(server, 3 * 3600)
        for n in range(4):  # each start has another node number in its ids
            server.start()
            accepted(client_again(server, client), submission(f"after-{n}"))
            server.kill()
        with server:
            client = client_again(server, client)
            for item in client.get("/v1/tasks").json["items"]:
                until(client, item["task_no"], "SUCCESS", limit=25)
                steps = [i["at"] for i in log_of(client, item["task_no"])]
                equal(steps, sorted(steps))
            newest = [t["request_id"] for t in client.get("/v1/tasks").json["items"]]
            equal(newest, [f"req-after-{n}" for n in (3, 2, 1, 0)] + ["req-waits", "req-runs", "req-fails"])
            assert server.events("clock.behind_store"), server.log()[-1000:]
            equal({c["signed"] for c in shop.calls}, {True})


def client_again(server, before):
    return Client(server.port, before.token)


def rows(server, sql):
    db = sqlite3.connect(server.store, timeout=5)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


@subset
def sigterm_lets_calls_in_flight_finish_within_the_grace():
    """CASE 48, the generous half: 20 in flight, all finished, exit 0."""
    with Shop() as shop, Server(queue(shop, concurrency=20, call_timeout="10s"), extra="grace: 10s\n") as server:
        client = server.client()
        shop.behave("/pay/process", "slow:1.5")
        numbers = [accepted(client, submission(n)) for n in range(20)]
        shop.wait_for(lambda calls: len(calls) == 20)
        equal(server.stop(), 0)
        server.start()
        client = server.client()
        equal([task(client, no)["task_status"] for no in numbers], ["SUCCESS"] * 20)
        equal(len(shop.calls), 20)


def stored(server, sql):
    with contextlib.closing(sqlite3.connect(f"file:{server.store}?mode=ro", uri=True, timeout=5)) as db:
        return db.execute(sql).fetchall()


def sigterm_with_a_short_grace_releases_what_was_sent_as_unknown_and_the_rest_uncounted():
    """CASE 48, the hasty half: the sent are unknown and not repeated before their call time-out; the unsent are as before."""
    with Shop() as shop, Server(queue(shop, concurrency=10, call_timeout="6s", lease="30s", order_check=look_up(shop)), extra="grace: 1s\n") as server:
        client = server.client()
        for n in range(20):
            shop.order(f"order-{n}", "go_on")
        shop.behave("/pay/process", "slow:5")
        numbers = [accepted(client, submission(n)) for n in range(20)]
        shop.wait_for(lambda calls: sum(c["method"] == "POST" for c in calls) == 10)
        sent = {c["order_no"] for c in shop.calls if c["method"] == "POST"}
        stopped_at = time.time()
        equal(server.stop(), 0)
        assert time.time() - stopped_at < 6
        stood = stored(server, "SELECT order_no, task_status, outcome_unknown, retry_count, crash_count FROM task")
        equal(sorted(stood), sorted((f"order-{n}", "WAITING", int(f"order-{n}" in sent), 0, 0) for n in range(20)), "the unsent are as before")
        server.start()
        client = server.client()
        for no in numbers:
            t = task(client, no)
            if t["order_no"] in sent:
                released = [i for i in log_of(client, no) if i["event"] == "released_sent"]
                equal((len(released), released[0]["to"], t["retry_count"]), (1, "WAITING", 0))
        with shop.lock:
            shop.scripts.clear()
        for no in numbers:
            until(client, no, "SUCCESS", limit=40)
        for order in sent:
            posts = [c for c in shop.calls if c["method"] == "POST" and c["order_no"] == order]
            looks = [c for c in shop.calls if c["method"] == "GET" and c["order_no"] == order and c["start"] > stopped_at]
            assert len(posts) <= 2 and looks and looks[0]["start"] >= posts[0]["start"] + 5.9, (posts, looks)
        unsent = [c["order_no"] for c in shop.calls if c["method"] == "POST" and c["order_no"] not in sent]
        equal(sorted(unsent), sorted({f"order-{n}" for n in range(20)} - sent), "each of the unsent is called once")
        equal({i["event"] for no in numbers for i in log_of(client, no)} & {"lease_expired", "unknown", "failed"}, set(), "nothing was counted")


def sighup_swaps_a_good_configuration_and_refuses_a_bad_one():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        server.write_config(queue(shop) + queue(shop, "SHIP_GOODS", "/ship"))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: client.post("/v1/tasks", submission("s", biz_type="SHIP_GOODS")).status == 201, what="the new queue")
        server.write_config("  PAY_CALLBACK: { handlr: x }")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "handlr" in server.log(), what="the refusal in the log")
        until(client, accepted(client, submission("after")), "SUCCESS")
        shop.behave("/ship", "status:404")
        open_one = accepted(client, submission("open", biz_type="SHIP_GOODS"))
        server.write_config(queue(shop))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: [e for e in server.log().splitlines() if "SHIP_GOODS" in e and "open" in e], what="the refusal to drop a queue with open tasks")
        equal(client.post("/v1/tasks", submission("still", biz_type="SHIP_GOODS")).status, 201)
        assert task(client, open_one)["task_status"] in ("WAITING", "RETRY", "PROCESSING")


@subset
def a_poison_task_ends_with_a_person_after_three_lost_workers_and_the_others_finish():
    """CASE 36: the handler of one order kills the server."""
    with Shop() as shop:
        server = Server(queue(shop, lease="3s", call_timeout="1s", connect_timeout="500ms", concurrency=4))
        with server:
            client = server.client()
            shop.behave("order-poison", "hang")
            poison = accepted(client, submission("poison"))
            others = [accepted(client, submission(n)) for n in range(8)]
            for life in range(3):
                shop.wait_for(lambda calls: sum(c["order_no"] == "order-poison" for c in calls) > life, limit=25)
                server.kill()
                server.start()
                client = server.client()
            stuck = until(client, poison, "MANUAL", limit=25)
            equal((stuck["manual_code"], stuck["crash_count"], stuck["outcome_unknown"]), ("WORKER_LOST", 3, True))
            for no in others:
                until(client, no, "SUCCESS", limit=25)
            equal(sum(c["order_no"] == "order-poison" for c in shop.calls), 3)


def a_full_disk_is_503_loses_nothing_and_heals_without_a_restart():
    if os.geteuid() != 0:
        raise Skip("needs root for a small tmpfs; the fault injector covers it")
    folder = tempfile.mkdtemp(prefix="backstop-e2e-full-")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], capture_output=True).returncode:
        shutil.rmtree(folder)
        raise Skip("mounting a tmpfs is not allowed here; the fault injector covers it")
    try:
        with Shop() as shop, Server(queue(shop, concurrency=2, call_timeout="15s", lease="40s"), folder=folder) as server:
            client = server.client()
            shop.behave("order-inflight", "slow:4")
            flying = accepted(client, submission("inflight"))
            shop.wait_for(lambda calls: calls)
            filler = os.path.join(folder, "filler")
            with open(filler, "wb", buffering=0) as f, contextlib.suppress(OSError):
                while f.write(b"x" * 4096):
                    pass
            refused = None
            for n in range(200):
                reply = client.post("/v1/tasks", submission(f"full{n}", payload="x" * 200_000))
                if reply.status != 201:
                    refused = reply
                    break
            equal((refused.status, refused.headers["Retry-After"] is not None), (503, True), refused.raw[:300])
            equal(Client(server.port).get("/readyz").status, 503)
            shop.wait_for(lambda calls: "end" in calls[0])
            time.sleep(1)  # the result is there and cannot be written yet
            os.unlink(filler)
            done = until(client, flying, "SUCCESS")
            equal((done["attempt_no"], len([c for c in shop.calls if c["order_no"] == "order-inflight"])), (1, 1))
            accepted(client, submission("after"))
            eventually(lambda: Client(server.port).get("/readyz").status == 200)
            equal(server.cli("version")[0], 0)
    finally:
        subprocess.run(["umount", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def a_store_that_stands_answers_503_within_its_limit_and_goes_on():
    """Somebody else holds the database's write lock: intake is told in time, nothing is lost, nobody restarts anything."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        other = sqlite3.connect(server.store, timeout=5, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        reply = client.post("/v1/tasks", submission("held"))
        took = time.monotonic() - began
        equal((reply.status, reply.headers["Retry-After"] is not None), (503, True), reply.raw[:300])
        assert took < 4, f"{took:.1f} s"
        other.execute("ROLLBACK")
        eventually(lambda: client.post("/v1/tasks", submission("held")).status in (200, 201), what="recovery")


def an_audit_that_cannot_be_written_keeps_the_change_back():
    """CASE 69."""
    with Shop() as shop, Server(queue(shop, max_retry_count=1)) as server:
        client = server.client()
        shop.behave("order-1", "fail")
        no = accepted(client, submission())
        before = until(client, no, "MANUAL")
        db = sqlite3.connect(server.store, timeout=5)
        db.execute("CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no audit today'); END")
        db.commit()
        reply = client.post(f"/v1/tasks/{no}/close", {"reason": "by hand", "conclusion": "other"})
        assert reply.status >= 500 or reply.status == 409, reply.raw
        equal(task(client, no), before)
        db.execute("DROP TRIGGER broken")
        db.commit()
        equal(client.post(f"/v1/tasks/{no}/close", {"reason": "by hand", "conclusion": "other"}).status, 200)


def slow_clients_are_cut_off_and_do_not_hold_others_up():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for s in slow:
            s.sendall(b"POST /v1/tasks HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        began = time.monotonic()
        accepted(client, submission())
        assert time.monotonic() - began < 2
        for s in slow:
            s.close()


def a_crowd_of_clients_gets_every_answer_right():
    with Shop() as shop, Server(queue(shop, concurrency=16)) as server:
        token, wrong = server.token(), []

        def one(k):
            client = Client(server.port, token)
            for n in range(60):
                body = submission(f"{k}-{n % 30}")
                reply = client.post("/v1/tasks", body)
                if reply.status != (201 if n < 30 else 200) or reply.json["request_id"] != body["request_id"]:
                    wrong.append(reply.raw[:200])
        threads = [threading.Thread(target=one, args=(k,)) for k in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal(wrong, [])
        client = Client(server.port, token)
        eventually(lambda: sum(i["counts"]["SUCCESS"] for i in client.get("/v1/stats").json["items"]) == 480, 40)
        equal(len({c["key"] for c in shop.calls}), 480)
        equal(len(shop.calls), 480)


if __name__ == "__main__":
    main(globals())
