"""The scenes of the first and second seed text, played on the real program."""
import re
import signal
import sqlite3
import time

from harness import Server, Shop, accepted, equal, eventually, log_of, look_up, main, queue, submission, subset, task, until


def seconds(item, other):
    """From one log item's time to another time, both RFC 3339 with microseconds."""
    def us(text):
        h, m, s = re.search(r"T(\d\d):(\d\d):(\d\d\.\d+)Z", text).groups()
        return int(h) * 3600 + int(m) * 60 + float(s)
    return (us(other) - us(item)) % 86400


@subset
def a_failed_callback_is_repaired_by_the_second_execution():
    with Shop(secret="e2e-secret-0123456789") as shop, Server(queue(shop)) as server:
        client = server.client()
        shop.behave("order-1", "fail", "ok")
        no = accepted(client, submission())
        done = until(client, no, "SUCCESS")
        equal((done["retry_count"], done["attempt_no"], done["last_outcome"]), (1, 2, "success"))
        equal([(i["event"], i["from"], i["to"]) for i in log_of(client, no)],
              [("submit", None, "WAITING"), ("claim", "WAITING", "PROCESSING"), ("failed", "PROCESSING", "RETRY"),
               ("claim", "RETRY", "PROCESSING"), ("succeeded", "PROCESSING", "SUCCESS")])
        equal([c["signed"] for c in shop.calls], [True, True], "every call is signed")
        equal(len({c["key"] for c in shop.calls}), 1, "one idempotency key for life")
        assert shop.calls[0]["fence"] < shop.calls[1]["fence"], "the fence grows"


def the_delays_are_those_of_the_queue_within_the_spread():
    """The first seed's ladder, 1, 3, 10, 30 minutes and an hour, with the second seed's 20 % spread: read from next_execute_at."""
    with Shop() as shop, Server(queue(shop, retry="{ delays: [1m, 3m, 10m, 30m, 1h], jitter: 20% }", max_retry_count=6)) as server:
        client = server.client()
        shop.behave("/pay/process", "fail")
        no = accepted(client, submission())
        for n, minutes in enumerate([1, 3, 10, 30, 60], 1):
            t = eventually(lambda: (t := task(client, no))["retry_count"] == n and t["task_status"] == "RETRY" and t, what=f"try {n}")
            waited = seconds(t["updated_at"], t["next_execute_at"])
            assert 0.79 * 60 * minutes <= waited <= 1.21 * 60 * minutes, f"after failure {n}: {waited} s for {minutes} min"
            equal(client.post(f"/v1/tasks/{no}/retry", {"reason": "the test does not wait"}).status, 200)
        done = until(client, no, "MANUAL")
        equal((done["retry_count"], done["manual_code"]), (6, "MAX_RETRIES"))


def the_spread_keeps_a_batch_from_coming_back_at_once():
    with Shop() as shop, Server(queue(shop, retry="{ delays: [10m], jitter: 20% }", concurrency=64)) as server:
        client = server.client()
        shop.behave("/pay/process", "fail")
        items = [submission(n) for n in range(200)]
        equal(client.post("/v1/tasks/batch", items).status, 200)
        eventually(lambda: client.get("/v1/tasks?status=RETRY&limit=200").json["items"].__len__() == 200, what="200 failed tasks")
        waits = [seconds(t["updated_at"], t["next_execute_at"]) for t in client.get("/v1/tasks?status=RETRY&limit=200").json["items"]]
        assert 479 <= min(waits) <= 540 and 660 <= max(waits) <= 721, f"{min(waits)} … {max(waits)}"


@subset
def spent_tries_go_through_failed_to_a_person_with_one_alert_and_closing_leaves_a_record():
    with Shop() as shop, Server(queue(shop, max_retry_count=3)) as server:
        client = server.client()
        shop.behave("/pay/process", "fail")
        no = accepted(client, submission())
        stuck = until(client, no, "MANUAL")
        equal((stuck["retry_count"], stuck["manual_code"], stuck["last_error_code"]), (3, "MAX_RETRIES", "DB_LOCKED"))
        equal([(i["event"], i["from"], i["to"]) for i in log_of(client, no)][-2:],
              [("failed_last", "PROCESSING", "FAILED"), ("escalate", "FAILED", "MANUAL")])
        alerts = [a for a in client.get("/v1/alerts").json["items"] if a["task_no"] == no]
        equal([(a["kind"], a["count"]) for a in alerts], [("max_retries", 1)], "one alert event after the last try")

        equal(client.post(f"/v1/tasks/{no}/close", {"conclusion": "done_elsewhere"}).status, 422, "no reason")
        equal(client.post(f"/v1/tasks/{no}/close", {"reason": "  ", "conclusion": "other"}).status, 422, "blank reason")
        equal(task(client, no)["task_status"], "MANUAL")
        closed = client.post(f"/v1/tasks/{no}/close", {"reason": "delivered by hand", "conclusion": "done_elsewhere"})
        equal((closed.status, closed.json["task_status"], closed.json["conclusion"]), (200, "CLOSED", "done_elsewhere"))
        record = log_of(client, no)[-1]
        equal((record["event"], record["from"], record["to"], record["operator"], record["reason"]),
              ("close", "MANUAL", "CLOSED", "admin-0", "delivered by hand"))
        audit = client.get("/v1/audit").json["items"][0]
        equal((audit["operator"], audit["reason"], audit["conclusion"], audit["order_no"], audit["before"]["task_status"],
               audit["after"]["task_status"]), ("admin-0", "delivered by hand", "done_elsewhere", "order-1", "MANUAL", "CLOSED"))
        equal(client.post(f"/v1/tasks/{no}/retry", {"reason": "again"}).status, 409, "closed is closed")


@subset
def an_order_that_is_finished_already_is_a_success_without_a_call():
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop))) as server:
        client = server.client()
        shop.order("order-1", "finished", status="PAID")
        done = until(client, accepted(client, submission()), "SUCCESS")
        equal((done["last_error_code"], done["last_outcome"]), ("ORDER_ALREADY_FINISHED", "finished"))
        equal([c["method"] for c in shop.calls], ["GET"], "only the look-up was made")


def an_order_that_is_never_found_goes_to_a_person_after_three_looks_over_the_grace():
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop), order_not_found_grace="14s")) as server:
        client = server.client()
        no = accepted(client, submission())
        waiting = eventually(lambda: (t := task(client, no))["task_status"] == "RETRY" and t)
        equal(waiting["retry_count"], 0, "not found spends no budget")
        stuck = until(client, no, "MANUAL", limit=40)
        equal((stuck["manual_code"], stuck["retry_count"]), ("ORDER_NOT_FOUND", 0))
        looks = [c["start"] for c in shop.calls]
        assert len(looks) >= 3 and looks[-1] - looks[0] >= 13.9, looks
        assert all(c["method"] == "GET" for c in shop.calls)


def the_state_is_checked_before_each_repair():
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop))) as server:
        client = server.client()
        shop.order("order-1", "go_on", status="UNPAID")
        shop.behave("order-1", "fail", "fail", "ok")
        until(client, accepted(client, submission()), "SUCCESS")
        equal([c["method"] for c in shop.calls], ["GET", "POST"] * 3)


def only_one_of_many_workers_gets_a_task():
    """The guarded claim: one PROCESSING at a time for one business object, whatever is queued for it, over two queues."""
    with Shop() as shop, Server(queue(shop, concurrency=16) + queue(shop, "SHIP_GOODS", "/ship", concurrency=16)) as server:
        client = server.client()
        shop.behave("/pay/process", "slow:0.15")
        shop.behave("/ship", "slow:0.15")
        numbers = [accepted(client, submission(n, order_no="order-one", biz_type=("PAY_CALLBACK", "SHIP_GOODS")[n % 2])) for n in range(12)]
        for no in numbers:
            until(client, no, "SUCCESS", limit=30)
        spans = sorted((c["start"], c["end"]) for c in shop.calls)
        equal(len(spans), 12)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), f"two calls of one order overlap: {spans}"


@subset
def a_worker_that_dies_loses_its_lease_and_the_task_goes_on_with_a_record():
    """CASE 39: SIGKILL in the middle of a call, restart under the same name."""
    with Shop() as shop:
        server = Server(queue(shop, lease="6s", call_timeout="2s", order_check=look_up(shop)), extra="node: same-name\n")
        shop.order("order-1", "go_on")
        shop.behave("order-1", "hang", "ok")
        with server:
            client = server.client()
            no = accepted(client, submission())
            shop.wait_for(lambda calls: any(c["method"] == "POST" for c in calls))
            server.kill()
            killed = time.monotonic()
            with shop.lock:  # the hanging call did not reach the order after all
                shop.orders["order-1"] = {"verdict": "go_on"}
            server.start()
            client.port, client.connection = server.port, None
            done = until(client, no, "SUCCESS", limit=20)
            took = time.monotonic() - killed
            assert took < 6 + 1 + 2, f"taken over {took:.1f} s after the kill for a lease of 6 s"
            equal((done["crash_count"], done["attempt_no"]), (1, 2))
            over = [i for i in log_of(client, no) if i["event"] == "lease_expired"]
            equal([(i["from"], i["to"], "taken over" in i["message"]) for i in over], [("PROCESSING", "WAITING", True)])
            posts = [c for c in shop.calls if c["method"] == "POST"]
            assert posts[0]["fence"] < posts[1]["fence"] and posts[1]["unknown"] is False, "looked up before the second call"


def a_repeated_request_id_is_one_task_and_other_content_is_refused():
    """CASE 15, and the second seed's unique request id."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        shop.behave("/pay/process", "ok")
        body = submission("ev-7", amount=500, currency="CNY")
        no = accepted(client, body)
        again = client.post("/v1/tasks", body)
        equal((again.status, again.json["task_no"], again.json["duplicate"]), (200, no, "request"))
        until(client, no, "SUCCESS")
        before = task(client, no)
        other = client.post("/v1/tasks", {**body, "amount": 5000})
        equal((other.status, other.json["code"], other.json["task_no"]), (409, "REQUEST_CONFLICT", no))
        equal(task(client, no), before, "the first is untouched")
        equal([a["kind"] for a in client.get("/v1/alerts").json["items"]], ["request_conflict"])
        equal(len([c for c in shop.calls if c["key"] == "req-ev-7"]), 1)


def the_same_effect_is_linked_to_its_first_task_and_contradiction_is_a_conflict():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        first = accepted(client, submission("a", biz_id="pay-1", amount=100, currency="CNY"))
        same = client.post("/v1/tasks", submission("b", biz_id="pay-1", order_no="order-a", amount=100, currency="CNY"))
        equal((same.status, same.json["task_no"], same.json["duplicate"]), (200, first, "effect"))
        linked = [i for i in log_of(client, first) if i["event"] == "linked"]
        equal(len(linked), 1)
        equal(len(re.findall(r"[0-9a-f]{64}", linked[0]["message"])), 2, "both payload hashes")
        other = client.post("/v1/tasks", submission("c", biz_id="pay-1", order_no="order-a", amount=101, currency="CNY"))
        equal((other.status, other.json["code"], other.json["task_no"]), (409, "EFFECT_CONFLICT", first))
        until(client, first, "SUCCESS")
        equal(len([c for c in shop.calls if c["method"] == "POST"]), 1)


def tasks_are_found_by_order_number_with_their_source():
    """CASE 70, the list: ids beyond 53 bits are exact strings."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for n, source in enumerate(("CALLBACK", "RECON", "PATROL", "MANUAL")):
            accepted(client, submission(n, order_no="812345678901234567", source=source, channel_trade_no="42000001"))
        found = client.get("/v1/tasks?order_no=812345678901234567").json["items"]
        equal([t["source"] for t in found], ["MANUAL", "PATROL", "RECON", "CALLBACK"], "newest first")
        equal({t["order_no"] for t in found}, {"812345678901234567"}, "CASE 70: ids are text")
        equal(len(client.get("/v1/tasks?channel_trade_no=42000001&source=RECON").json["items"]), 1)
        assert all(isinstance(t["task_no"], str) and isinstance(t["version"], str) for t in found)


def nine_of_the_ten_points_of_the_checklist_hold_for_one_task():
    """The first seed's tenth section, point by point; the tenth, the link to a difference, comes with reconciliation."""
    with Shop() as shop:
        server = Server(queue(shop, lease="4s", call_timeout="2s", max_retry_count=5, retry="{ delays: [500ms], jitter: 0% }"))
        shop.behave("order-1", "fail", "status:500", "slow:30", "person")
        with server:
            client = server.client()
            no = accepted(client, submission(source="CALLBACK"))
            waiting = until(client, no, "RETRY")
            assert seconds(waiting["updated_at"], waiting["next_execute_at"]) >= 0.5, "4: the time of the next try"
            shop.wait_for(lambda calls: len(calls) == 3)
            running = task(client, no)
            equal((running["task_status"], bool(running["locked_by"]), bool(running["locked_until"])), ("PROCESSING", True, True), "5: a lock")
            server.kill()
            server.start()
            client = server.client()
            stuck = until(client, no, "MANUAL")
            rows = server_rows(server, "SELECT count(*), count(DISTINCT id) FROM task")
            equal(rows, [(1, 1)], "1: there is a table, 2: one task number a task")
            equal((stuck["source"], stuck["max_retry_count"], stuck["retry_count"]), ("CALLBACK", 5, 2), "3: the source, 4: the tries")
            items = log_of(client, no)
            equal([(i["event"], i["to"]) for i in items if i["event"] == "lease_expired"], [("lease_expired", "WAITING")], "6: the lock times out")
            equal([(i["outcome"], i["code"], i["http_status"]) for i in items if i["event"] in ("failed", "unknown", "needs_person")],
                  [("failed", "DB_LOCKED", 200), ("unknown", "HTTP_500", 500), ("manual", "NO_STOCK", 200)], "7: the error of each execution")
            equal((stuck["task_status"], stuck["last_error_code"]), ("MANUAL", "NO_STOCK"), "8: a state for people")
            equal([t["task_no"] for t in client.get("/v1/tasks?order_no=order-1").json["items"]], [no], "9: found by order number")


def server_rows(server, sql):
    db = sqlite3.connect(f"file:{server.store}?mode=ro", uri=True, timeout=5)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def a_process_that_stood_still_past_its_lease_ends_its_call_once_and_succeeds_once():
    """The answer waits while the process is stopped for longer than lease and time-out: one end of the first execution (its own, which wins over
    the sweep of its node, or the lost lease), then the second. That another holder's success stands against a late result is shown where there
    are two holders: a_lost_lease_cannot_settle (tests/contract/finish.c), a_result_that_comes_too_late_is_refused (tests/unit/engine_lease.c)."""
    with Shop() as shop, Server(queue(shop, lease="4s", call_timeout="2s")) as server:
        client = server.client()
        shop.behave("order-1", "slow:1.5", "ok")
        no = accepted(client, submission())
        shop.wait_for(lambda calls: len(calls) == 1)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(6)
        server.process.send_signal(signal.SIGCONT)
        done = until(client, no, "SUCCESS", limit=20)
        events = [i["event"] for i in log_of(client, no)]
        first = [e for e in events if e in ("unknown", "lease_expired")]
        equal((events.count("succeeded"), len(first) <= 1), (1, True), events)
        equal(events.count("stale_result"), events.count("lease_expired"), "the late result of a lost lease is recorded")
        equal((len(shop.calls), done["attempt_no"]), (1 + len(first),) * 2, events)
        fences = [c["fence"] for c in shop.calls]
        equal(fences, sorted(set(fences)), "fences strictly grow")


if __name__ == "__main__":
    main(globals())
