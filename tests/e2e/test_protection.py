"""An outage downstream is not amplified, and a flood in one queue hurts no other."""
import time
from harness import Server, Shop, equal, eventually, look_up, main, queue, submission, subset, task, accepted


def submit_many(client, count, biz_type="PAY_CALLBACK", prefix="", **more):
    reply = client.post("/v1/tasks/batch", [submission(f"{prefix}{n}", biz_type=biz_type, **more) for n in range(count)])
    equal({i["status"] for i in reply.json["items"]}, {201})
    return [i["task_no"] for i in reply.json["items"]]


def counts(client, biz_type="PAY_CALLBACK"):
    return next(q["counts"] for q in client.get("/v1/queues").json["items"] if q["biz_type"] == biz_type)


def alerts(client, kind="breaker"):
    return [a for a in client.get("/v1/alerts").json["items"] if a["kind"] == kind]


def _most_at_once(calls):
    steps = sorted([(c["start"], 1) for c in calls] + [(c["end"], -1) for c in calls if "end" in c])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def _most_over(calls, rate):
    """How many calls more than the rate allows started in any span; the shop may see a start late."""
    starts = sorted(c["start"] for c in calls)
    return max(j - i - rate * (starts[j] - starts[i]) for i in range(len(starts)) for j in range(i, len(starts)))


@subset
def an_endpoint_that_is_not_there_costs_few_calls_no_budget_one_alert_and_one_recovery():
    """CASE 21."""
    with Shop() as shop, Server(queue(shop, concurrency=4)) as server:
        client = server.client()
        shop.behave("/pay/process", "status:404")
        numbers = submit_many(client, 500)
        opened = eventually(lambda: alerts(client))
        assert "HTTP_404" in opened[0]["message"], opened
        time.sleep(2.5)
        assert len(shop.calls) <= 4 + 3, f"{len(shop.calls)} calls before the first probe"
        standing = counts(client)
        equal((standing["WAITING"] + standing["RETRY"], standing["SUCCESS"]), (500, 0))
        breaker = next(q for q in client.get("/v1/queues").json["items"] if q["biz_type"] == "PAY_CALLBACK")["breaker"]
        equal(breaker["state"], "open")
        before = len(shop.calls)
        eventually(lambda: len(shop.calls) > before, what="a probe")
        shop.behave("/pay/process", "ok")
        eventually(lambda: counts(client)["SUCCESS"] == 500, 40, "all 500 without an operator")
        equal({task(client, no)["retry_count"] for no in numbers[:50]}, {0}, "full budgets")
        equal(len([a for a in client.get("/v1/alerts").json["items"]]), 1, "one alert")
        ended = eventually(lambda: [a for a in alerts(client) if not a["open"]], what="its recovery")
        assert ended[0]["recovered_at"], ended


def a_look_up_that_is_not_there_keeps_the_handler_from_being_called():
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop))) as server:
        client = server.client()
        for n in range(6):
            shop.order(f"order-{n}", 404)
        submit_many(client, 6)
        opened = eventually(lambda: alerts(client))
        assert "order_check" in opened[0]["message"] and "CHECK_HTTP_404" in opened[0]["message"], opened
        equal([c for c in shop.calls if c["method"] == "POST"], [])
        for n in range(6):
            shop.order(f"order-{n}", "go_on")
        eventually(lambda: counts(client)["SUCCESS"] == 6, 40)
        eventually(lambda: not alerts(client)[0]["open"])


@subset
def a_host_that_asks_for_a_pause_is_called_by_no_queue_and_others_go_on():
    """CASE 24, DESIGN 5.2: Retry-After pauses the host."""
    with Shop() as shop, Shop() as other:
        queues = queue(shop) + "\n" + queue(shop, "REFUND", "/refund") + "\n" + queue(other, "SHIP", "/ship")
        with Server(queues) as server:
            client = server.client()
            shop.behave("order-first", "status:503:Retry-After:300")
            first = accepted(client, submission("first"))
            eventually(lambda: task(client, first)["task_status"] == "RETRY")
            submit_many(client, 20, prefix="pay-")
            submit_many(client, 20, "REFUND", "refund-")
            submit_many(client, 20, "SHIP", "ship-")
            eventually(lambda: counts(client, "SHIP")["SUCCESS"] == 20)
            time.sleep(1.5)
            equal(len(shop.calls), 1, "nobody calls that host")
            equal((counts(client)["SUCCESS"], counts(client, "REFUND")["SUCCESS"]), (0, 0))
            waits = next(e for e in server.events("host.paused"))
            equal((waits["host"], waits["seconds"]), (f"127.0.0.1:{shop.port}", 300))


@subset
def the_limit_of_a_host_holds_over_all_queues_that_call_it():
    with Shop() as shop:
        queues = queue(shop, concurrency=8) + "\n" + queue(shop, "REFUND", "/refund", concurrency=8)
        with Server(queues, extra=f'hosts: {{ "127.0.0.1:{shop.port}": {{ concurrency: 3 }} }}\n') as server:
            client = server.client()
            shop.behave("/pay/process", "slow:0.1")
            shop.behave("/refund", "slow:0.1")
            submit_many(client, 30, prefix="pay-")
            submit_many(client, 30, "REFUND", "refund-")
            eventually(lambda: counts(client)["SUCCESS"] == 30 and counts(client, "REFUND")["SUCCESS"] == 30, 30)
            equal(_most_at_once(shop.calls), 3)
            half = sorted(shop.calls, key=lambda c: c["start"])[:30]
            assert all(sum(c["path"] == p for c in half) >= 8 for p in ("/pay/process", "/refund")), "its places go round"


def a_backlog_stays_within_the_rate_and_fresh_work_goes_before_it():
    """CASE 35, its limits: 25/s, urgent work first, a pause holds. Each single second is in the unit tests, which have a clock of their own."""
    with Shop() as shop, Server(queue(shop, rate="25/s")) as server:
        client = server.client()
        submit_many(client, 400, prefix="old-", priority=3)
        fresh = []
        for n in range(25):
            fresh.append(accepted(client, submission(f"fresh-{n}", priority=0)))
            time.sleep(0.2)
        eventually(lambda: len([c for c in shop.calls if c["key"].startswith("req-fresh")]) == 25)
        calls = list(shop.calls)
        assert _most_over(calls, 25) <= 25, f"{_most_over(calls, 25)} more than the rate"
        assert len(calls) >= 25 * 5 * 0.8, f"the rate is used: {len(calls)}"
        created = {t["request_id"]: t for t in (task(client, no) for no in fresh)}
        started = {c["key"]: c["start"] for c in calls}
        late = [k for k, t in created.items() if started[k] - parse(t["created_at"]) > 3.0]
        equal(late, [], "fresh work does not stand behind the backlog")
        client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "too much"})
        time.sleep(1.0)
        seen = len(shop.calls)
        time.sleep(1.0)
        equal(len(shop.calls), seen, "a pause holds")


def parse(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    main(globals())
