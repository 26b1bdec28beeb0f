"""What people do: roles, actions on tasks, pausing, tokens, the command line, logs that keep secrets."""
import json
import os
import threading
import time

from harness import (SECRET, Client, Server, Shop, accepted, at, equal, eventually, log_of, look_up, main, queue, submission, subset, task, until)


@subset
def each_role_may_do_what_its_row_says_and_nothing_else():
    with Shop() as shop, Server(queue(shop, retry="{ delays: [1h] }")) as server:
        admin = server.client()
        shop.behave("/pay/process", "fail")
        no = accepted(admin, submission("roles"))
        until(admin, no, "RETRY")
        doors = {"read": lambda c: c.get(f"/v1/tasks/{no}"), "submit": lambda c: c.post("/v1/tasks", submission("roles")),
                 "act": lambda c: c.post(f"/v1/tasks/{no}/retry", {"reason": "now"}),
                 "pause": lambda c: c.post("/v1/queues/PAY_CALLBACK/resume", {"reason": "go"}), "tokens": lambda c: c.get("/v1/tokens"),
                 "audit": lambda c: c.get("/v1/audit")}
        may = {"service": {"read", "submit"}, "viewer": {"read", "audit"}, "approver": {"read", "audit"}, "finance": {"read", "audit"},
               "operator": {"read", "act", "pause", "audit"}, "admin": set(doors)}
        for role, allowed in may.items():
            client = server.client(role)
            for door, call in doors.items():
                status = call(client).status
                if door in allowed:
                    assert status in (200, 409), f"{role} {door}: {status}"
                else:
                    equal(status, 403, f"{role} {door}")


def a_token_for_some_queues_sees_and_submits_only_those():
    with Shop() as shop, Server(queue(shop) + queue(shop, "SHIP_GOODS", "/ship")) as server:
        admin, shipper = server.client(), server.client("service", queues="SHIP_GOODS")
        pay = accepted(admin, submission("p"))
        ship = accepted(shipper, submission("s", biz_type="SHIP_GOODS"))
        equal(shipper.post("/v1/tasks", submission("x")).status, 403)
        equal((shipper.get(f"/v1/tasks/{pay}").status, shipper.get(f"/v1/tasks/{ship}").status), (404, 200))
        equal([t["task_no"] for t in shipper.get("/v1/tasks").json["items"]], [ship])


@subset
def hold_unhold_retry_resolve_and_close_follow_the_table():
    with Shop() as shop, Server(queue(shop, retry="{ delays: [1h] }")) as server:
        client = server.client()
        shop.behave("/pay/process", "fail")
        no = accepted(client, submission())
        until(client, no, "RETRY")
        act = lambda action, **body: client.post(f"/v1/tasks/{no}/{action}", {"reason": "because", **body})
        held = act("hold")
        equal((held.status, held.json["task_status"], held.json["manual_code"]), (200, "MANUAL", "HELD"))
        back = act("unhold")
        equal((back.json["task_status"], back.json["retry_count"]), ("RETRY", 1), "budget kept")
        equal(act("unhold").status, 409)
        equal(act("resolve", conclusion="other").status, 409)
        version = task(client, no)["version"]
        equal(act("hold", expected_version=str(int(version) + 5)).json["code"], "STALE_VERSION")
        equal(act("hold", expected_version=version).status, 200)
        pause = lambda what: equal(client.post(f"/v1/queues/PAY_CALLBACK/{what}", {"reason": "look first"}).status, 200)
        pause("pause")  # an idle engine may take the task before it is read back for the answer
        fresh = act("retry")
        pause("resume")
        equal((fresh.json["task_status"], fresh.json["retry_count"]), ("WAITING", 0), "a person's retry is a fresh budget")
        until(client, no, "RETRY")
        equal(act("close", conclusion="never heard of").status, 422)
        equal(act("close", conclusion="not_done").json["task_status"], "CLOSED")
        for action in ("retry", "hold", "unhold", "resolve", "close"):
            reply = act(action, conclusion="other") if action in ("resolve", "close") else act(action)
            equal(reply.status, 409, action)
            assert "CLOSED" in reply.json["detail"], reply.raw
        acts = [a["action"] for a in client.get("/v1/audit").json["items"] if a["action"] not in ("pause", "resume")]
        equal(acts[:5], ["close", "retry", "hold", "unhold", "hold"])
        again = client.post("/v1/tasks", submission("again", biz_id="biz-1", order_no="order-1"))
        equal(again.status, 201, "closed as not_done frees its effect key")


@subset
def closing_a_running_task_waits_for_the_end_of_its_call():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for n, (behaviour, state) in enumerate([("slow:1", "SUCCESS"), ("lost", "MANUAL")]):
            shop.behave(f"order-{n}", behaviour if n == 0 else "slow:1", behaviour)
        no = accepted(client, submission(0))
        shop.wait_for(lambda calls: len(calls) == 1)
        asked = client.post(f"/v1/tasks/{no}/close", {"reason": "enough", "conclusion": "other"})
        equal((asked.status, asked.json["task_status"], asked.json["close_pending"]), (202, "PROCESSING", "close"))
        done = until(client, no, "SUCCESS")
        equal(done["close_pending"], None)


def a_failed_call_of_a_task_that_is_being_closed_closes_it():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        gate = threading.Event()
        original = shop.next_behaviour
        shop.next_behaviour = lambda *a: (gate.wait(10), original(*a))[1]
        for order, behaviour, state, code in (("order-1", "fail", "CLOSED", None), ("order-2", "lost", "MANUAL", "OUTCOME_UNKNOWN")):
            gate.clear()
            shop.behave(order, behaviour)
            no = accepted(client, submission(order[-1]))
            shop_calls = lambda: task(client, no)["task_status"] == "PROCESSING"
            eventually(shop_calls)
            equal(client.post(f"/v1/tasks/{no}/close", {"reason": "enough", "conclusion": "other"}).status, 202)
            gate.set()
            ended = until(client, no, "CLOSED", "MANUAL")
            equal((ended["task_status"], ended["manual_code"]), (state, code))


@subset
def a_paused_queue_waits_and_stays_paused_over_a_restart():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        equal(client.post("/v1/queues/PAY_CALLBACK/pause", {}).status, 422, "a reason is asked for")
        equal(client.post("/v1/queues/NO_SUCH/pause", {"reason": "x"}).status, 404)
        equal(client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "shop is down"}).status, 200)
        no = accepted(client, submission())
        server.stop()
        server.start()
        client = server.client()
        row = next(q for q in client.get("/v1/queues").json["items"] if q["biz_type"] == "PAY_CALLBACK")
        equal((row["paused"], row["reason"]), (True, "shop is down"))
        time.sleep(0.5)
        equal((task(client, no)["task_status"], shop.calls), ("WAITING", []))
        equal(client.post("/v1/queues/PAY_CALLBACK/resume", {"reason": "shop is back"}).status, 200)
        until(client, no, "SUCCESS")
        equal([a["action"] for a in client.get("/v1/audit").json["items"] if a["action"] in ("pause", "resume")], ["resume", "pause"])


def a_delayed_task_is_not_run_before_its_time():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        began = time.time()
        no = accepted(client, submission(delay="2s"))
        until(client, no, "SUCCESS")
        assert shop.calls[0]["start"] - began >= 2.0, shop.calls[0]["start"] - began
        assert shop.calls[0]["start"] - began < 3.0


def priorities_go_first():
    with Shop() as shop, Server(queue(shop, concurrency=1)) as server:
        client = server.client()
        client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "line up"})
        for n, priority in enumerate((3, 1, 0, 2)):
            accepted(client, submission(priority, priority=priority))
        client.post("/v1/queues/PAY_CALLBACK/resume", {"reason": "go"})
        shop.wait_for(lambda calls: len(calls) == 4)
        equal([c["order_no"] for c in shop.calls], ["order-0", "order-1", "order-2", "order-3"])


def lists_page_by_cursor_and_say_how_far_they_looked():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        client.post("/v1/tasks/batch", [submission(n) for n in range(450)])
        seen, cursor, pages = [], None, 0
        while True:
            page = client.get("/v1/tasks?limit=200" + (f"&cursor={cursor}" if cursor else "")).json
            seen += [t["request_id"] for t in page["items"]]
            assert all("payload" not in t for t in page["items"]), "lists carry no payloads"
            pages, cursor = pages + 1, page["next_cursor"]
            if not cursor:
                break
        equal((len(seen), len(set(seen)), pages), (450, 450, 3))
        equal(len(client.get("/v1/tasks?request_id=req-7").json["items"]), 1)
        equal(len(client.get("/v1/tasks?biz_id=biz-7").json["items"]), 1)
        equal(client.get("/v1/tasks?created_from=" + at(days=1)).json["items"], [])


@subset
def a_revoked_token_stops_working_within_two_seconds():
    with Shop() as shop, Server(queue(shop)) as server:
        viewer = server.client("viewer")
        equal(viewer.get("/v1/tasks").status, 200)
        server.cli("token", "revoke", "viewer-0")
        eventually(lambda: viewer.get("/v1/tasks").status == 401, 2.0, "the revocation")


def the_token_is_the_only_line_on_standard_output_with_and_without_a_server():
    with Shop() as shop:
        server = Server(queue(shop))
        code, out, _ = server.cli("token", "add", "offline", "--role", "admin")
        equal((out.count("\n"), len(out.split())), (1, 1))
        with server:
            equal(Client(server.port, out.strip()).get("/v1/tasks").status, 200)
            code, online, _ = server.cli("token", "add", "online", "--role", "viewer")
            equal((online.count("\n"), len(online.split())), (1, 1))
            equal(Client(server.port, online.strip()).get("/v1/tasks").status, 200)
            equal(server.cli("token", "add", "online", "--role", "viewer", check=False)[0], 1, "the name is taken")
            equal(server.cli("token", "add", "odd", "--role", "king", check=False)[0], 2)
            for role in ("service", "viewer", "operator", "approver", "finance", "admin"):
                server.cli("token", "add", f"a-{role}", "--role", role)
            listed = json.loads(server.cli("token", "list", "--json")[1])
            assert {"service", "approver", "finance"} <= {t["role"] for t in listed["items"]} and online.strip() not in str(listed)


def why_a_token_was_made_and_ended_is_in_the_audit_with_what_it_could_do():
    """With and without a server; the reason may be left out."""
    with Shop() as shop:
        server = Server(queue(shop))
        server.cli("token", "add", "a", "--role", "service", "--queues", "PAY_CALLBACK", "--reason", "a new shop")
        server.cli("token", "revoke", "a", "--reason", "the shop is closed")
        equal(server.cli("token", "revoke", "a", "--reason", " ", check=False)[0], 2)
        with server:
            client = server.client()
            server.cli("token", "add", "b", "--role", "viewer", "--reason", "for the auditor")
            server.cli("token", "revoke", "b")
            equal(client.post("/v1/tokens", {"name": "c", "role": "viewer", "reason": "by HTTP"}).status, 201)
            equal(client.post("/v1/tokens/c/revoke", {"reason": "seen enough"}).status, 200)
            rows = [(i["object"], i["action"], i["reason"], i["before"], i["after"]) for i in reversed(client.get("/v1/audit").json["items"])
                    if i["object"] in ("token:a", "token:b", "token:c")]
            able = lambda role, queues, revoked: {"role": role, "queues": queues, "revoked": revoked}
            ends = lambda role, queues: (able(role, queues, False), able(role, queues, True))
            equal(rows, [("token:a", "token_add", "a new shop", None, able("service", ["PAY_CALLBACK"], False)),
                         ("token:a", "token_revoke", "the shop is closed", *ends("service", ["PAY_CALLBACK"])),
                         ("token:b", "token_add", "for the auditor", None, able("viewer", [], False)),
                         ("token:b", "token_revoke", None, *ends("viewer", [])),
                         ("token:c", "token_add", "by HTTP", None, able("viewer", [], False)),
                         ("token:c", "token_revoke", "seen enough", *ends("viewer", []))])


def the_command_line_does_what_the_api_does():
    with Shop() as shop, Server(queue(shop, max_retry_count=1)) as server:
        shop.behave("order-1", "fail")
        code, out, _ = server.cli("submit", "--json", stdin=json.dumps(submission()))
        no = json.loads(out)["task_no"]
        client = server.client()
        until(client, no, "MANUAL")
        assert no in server.cli("task", "list", "--status", "MANUAL")[1]
        shown = json.loads(server.cli("task", "show", no, "--json")[1])
        equal((shown["task_status"], shown["request_id"]), ("MANUAL", "req-1"))
        assert "escalate" in server.cli("task", "log", no)[1]
        equal(server.cli("task", "close", no, "--conclusion", "other", check=False)[0] in (1, 2), True, "no reason")
        server.cli("task", "retry", no, "--reason", "mended")
        until(client, no, "MANUAL")
        server.cli("task", "resolve", no, "--reason", "by hand", "--conclusion", "done_elsewhere")
        equal(task(client, no)["task_status"], "CLOSED")
        shop.behave("order-2", "status:404")
        other = json.loads(server.cli("submit", "--json", stdin=json.dumps(submission(2)))[1])["task_no"]
        until(client, other, "RETRY")
        server.cli("queue", "pause", "PAY_CALLBACK", "--reason", "look first")
        for command, state in (("hold", "MANUAL"), ("unhold", "WAITING")):
            server.cli("task", command, other, "--reason", "by hand")
            equal(task(client, other)["task_status"], state, command)
        server.cli("queue", "resume", "PAY_CALLBACK", "--reason", "looked")
        until(client, other, "WAITING", "RETRY")
        server.cli("task", "close", other, "--reason", "by hand", "--conclusion", "done_elsewhere")
        equal((task(client, other)["task_status"], task(client, other)["conclusion"]), ("CLOSED", "done_elsewhere"))
        equal(server.cli("version")[1].strip()[:9], "backstop ")
        equal(server.cli("check-config")[0], 0)
        equal(server.cli("migrate", check=False)[0], 3, "the store is in use")
        who = client.get("/v1/audit").json["items"][0]["operator"]
        assert who and who != "admin", who
        assert "PAY_CALLBACK" in server.cli("queue", "list")[1]
        server.cli("queue", "pause", "PAY_CALLBACK", "--reason", "x")
        server.cli("queue", "resume", "PAY_CALLBACK", "--reason", "y")
        equal(json.loads(server.cli("stats", "--json")[1])["items"][0]["biz_type"], "PAY_CALLBACK")
        equal(server.cli("task", "show", "123", check=False)[0], 1)
        equal(server.cli("task", "shw", check=False)[0], 2)
        equal(server.cli("check-store", check=False)[0] in (0, 3), True, "while serving: either works or says that the store is in use")


def what_the_command_line_shows_names_a_way_on():
    with Shop() as shop, Server(queue(shop) + "\n" + queue(shop, "MONEY", order_check=look_up(shop), effect="money")) as server:
        client = server.client()
        for n in range(3):
            accepted(client, submission(n, biz_type=f"NO_SUCH_{n}", park=True))
        _, out, err = server.cli("alert", "list", "--limit", "2")
        assert "no queue NO_SUCH_2 is configured" in out and "more: --cursor " in err, out + err
        assert "NO_SUCH_0" in server.cli("alert", "list", "--cursor", err.split()[-1])[1]
        no = accepted(client, submission(10, amount=6410, currency="CNY"))
        until(client, no, "SUCCESS")
        assert "64.10 CNY" in server.cli("stats")[1] and "64.10 CNY" in server.cli("task", "show", no)[1]
        _, _, err = server.cli("task", "retry", no, "--reason", "x", check=False)
        assert "the task has ended" in err, err
        _, _, err = server.cli("task", "list", "--status", "manual", check=False)
        assert "MANUAL or CLOSED" in err, err
        held = accepted(client, submission(11, biz_type="MONEY", delay="1h"))
        _, _, err = server.cli("task", "retry", held, "--reason", "x", check=False)
        assert "--expected-version" in err, err
        equal([line for line in client.get("/metrics").raw.decode().splitlines() if line.startswith("backstop_claims_total")], ["backstop_claims_total 1"])


def a_word_during_the_call_says_in_the_log_which_it_was():
    with Shop() as shop, Server(queue(shop)) as server:
        shop.behave("order-1", "slow:1.5")
        client = server.client()
        no = accepted(client, submission(1))
        until(client, no, "PROCESSING")
        for action in ("close", "hold"):
            server.cli("task", action, no, "--reason", "late", *(["--conclusion", "other"] if action == "close" else []))
        until(client, no, "SUCCESS")
        items = client.get(f"/v1/tasks/{no}/log").json["items"]
        equal([i["message"] for i in items if i["event"] == "ask_close"], ["close", "hold"])
        alert = client.get("/v1/alerts").json["items"][0]
        equal((alert["kind"], "succeeded" in (alert["message"] or "")), ("overtaken", True))


def check_store_finds_a_sound_store_sound_and_a_wrong_figure_wrong():
    with Shop() as shop:
        server = Server(queue(shop))
        with server:
            client = server.client()
            for n in range(20):
                until(client, accepted(client, submission(n)), "SUCCESS")
            server.stop()
            equal(server.cli("check-store")[0], 0)
            import sqlite3
            db = sqlite3.connect(server.store)
            db.execute("UPDATE queue_stat SET n = n + 1 WHERE task_status = 'SUCCESS'")
            db.commit()
            db.close()
            code, out, err = server.cli("check-store", check=False)
            equal(code in (1, 3), True)
            assert "SUCCESS" in out + err, out + err


@subset
def metrics_figures_and_health_tell_the_truth():
    with Shop() as shop, Server(queue(shop, max_retry_count=1)) as server:
        client = server.client()
        shop.behave("order-2", "fail")
        until(client, accepted(client, submission(1, amount=100, currency="CNY")), "SUCCESS")
        until(client, accepted(client, submission(2, amount=250, currency="CNY")), "MANUAL")
        rows = {(a["task_status"], a["currency"]): (a["count"], a["amount"]) for i in client.get("/v1/stats").json["items"] for a in i["amounts"]}
        equal(rows, {("SUCCESS", "CNY"): (1, "100"), ("MANUAL", "CNY"): (1, "250")})
        text = Client(server.port).get("/metrics").raw.decode()
        assert 'task_status="MANUAL"' in text or 'status="MANUAL"' in text, text[:2000]
        for line in text.splitlines():
            assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0, line
        equal((Client(server.port).get("/healthz").status, Client(server.port).get("/readyz").status), (200, 200))


def logs_are_json_lines_and_keep_secrets_cards_and_phones():
    """Canaries: the secret and the tokens are in no log line, figure or reply; a card and a telephone only where their owner gave them."""
    with Shop(secret=SECRET) as shop, Server(queue(shop, max_retry_count=2)) as server:
        client, replies = server.client(), []

        def post(path, body):
            replies.append(client.post(path, body))
            return replies[-1]

        def get(path):
            replies.append(client.get(path))
            return replies[-1]

        shop.behave("4111111111111111", "status:500")
        no = post("/v1/tasks", submission(order_no="4111111111111111", payload={"card": "4111111111111111", "phone": "13812345678"})).json["task_no"]
        until(client, no, "MANUAL")
        spoken = server.token("viewer")  # somebody pastes a token where a number belongs
        for path, status in ((f"/v1/tasks/{spoken}", 404), (f"/v1/tasks/bst%5F{spoken[4:]}", 404), (f"/v1/tasks?order={spoken}", 400),
                             ("/v1/tasks/4111.1111.1111.1111", 404)):
            equal(get(path).status, status, path)
        equal(post(f"/v1/tokens/{spoken}/revoke", {}).status, 404)
        equal(post(f"/v1/tasks/{no}/retry", {"reason": f"13812345678 used {spoken}"}).status, 200)
        equal(post("/v1/queues/PAY_CALLBACK/pause", {"reason": f"card 4111-1111-1111-1111, {spoken}"}).status, 200)
        equal(post("/v1/tasks", submission("x", **{spoken: 1})).status, 422)
        shown = [get(path) for path in (f"/v1/tasks/{no}", f"/v1/tasks/{no}/log", "/v1/tasks", "/v1/alerts", "/v1/stats", "/v1/tokens", "/v1/queues",
                                        "/v1/version", "/healthz", "/readyz", "/metrics")]
        equal({r.status for r in shown}, {200})
        metrics = shown[-1].raw.decode()
        server.stop()
        lines = server.log().splitlines()
        for line in lines:
            assert {"ts", "level", "event"} <= set(json.loads(line)), line
        for canary in (SECRET, client.token, spoken, spoken[4:], "4111111111111111", "4111.1111.1111.1111", "4111-1111-1111-1111", "13812345678"):
            assert canary not in server.log(), f"{canary[:6]}… is in the log"
            assert canary not in metrics, f"{canary[:6]}… is in the metrics"
        for canary in (SECRET, client.token):
            for reply in replies:
                assert canary.encode() not in reply.raw, f"{canary[:6]}… is in {reply.raw[:300]}"
        assert server.log().count("bst_***") >= 5, "the lines are there, without the token"
        settled = [json.loads(l) for l in lines if '"task.settled"' in l]
        assert settled and {"task_no", "order_no", "request_id", "attempt", "from", "to"} <= set(settled[0]), settled[:1]


if __name__ == "__main__":
    main(globals())
