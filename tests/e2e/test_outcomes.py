"""The outcome table over real sockets: what a handler or a look-up does, and what becomes of the task."""
import gzip
import json
import socket
import threading
import time

from harness import (Server, Shop, accepted, equal, eventually, free_port, log_of, look_up, main, queue, submission, subset, task,
                     until)


class RawPeer:
    """A listener whose answers are written by hand: serve(connection, number of the connection)."""

    def __init__(self, serve):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.serve, self.requests = serve, []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        n = 0
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            n += 1
            threading.Thread(target=self.one, args=(connection, n), daemon=True).start()

    def one(self, connection, n):
        try:
            self.serve(self, connection, n)
        except OSError:
            pass
        finally:
            connection.close()

    def read_request(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
        while len(body) < length:
            body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def first_outcome(client, no):
    """The end of the first execution as the log has it."""
    end = eventually(lambda: [i for i in log_of(client, no) if i["event"] not in ("submit", "claim")], what="an ended execution")[0]
    return end["outcome"], end["code"], end["to"]


@subset
def permanent_refusals_go_to_a_person_after_one_attempt():
    """CASE 21: 400, 410, 413, 415, 422."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for status in (400, 410, 413, 415, 422):
            shop.behave(f"order-{status}", f"status:{status}")
            stuck = until(client, accepted(client, submission(status)), "MANUAL")
            equal((stuck["attempt_no"], stuck["last_error_code"], stuck["manual_code"]), (1, f"HTTP_{status}", f"HTTP_{status}"))
            assert f"told to answer {status}" in stuck["result_snapshot"], "the body's excerpt is kept"


@subset
def busy_answers_are_retried_and_counted():
    """CASE 21: 408, 409, 425, 429 without Retry-After."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for status in (408, 409, 423, 425, 429):
            shop.behave(f"order-{status}", f"status:{status}", "ok")
            done = until(client, accepted(client, submission(status)), "SUCCESS")
            equal((done["retry_count"], done["attempt_no"]), (1, 2), str(status))


@subset
def faults_of_the_endpoint_spend_no_budget():
    """CASE 21: 401, 403, 404, 405, 407; the breaker and its alert are in test_protection.py."""
    statuses = (401, 403, 404, 405, 407)
    with Shop() as shop, Server("\n".join(queue(shop, f"Q{s}") for s in statuses)) as server:
        client = server.client()
        for status in statuses:
            shop.behave(f"order-{status}", f"status:{status}")
            no = accepted(client, submission(status, biz_type=f"Q{status}"))
            equal(first_outcome(client, no), ("not_processed", f"HTTP_{status}", "RETRY"))
            equal(task(client, no)["retry_count"], 0, "full budget")
        equal(client.get("/v1/alerts").json["items"], [], "one fault trips nothing")


@subset
def a_redirect_is_not_followed_and_its_target_is_named():
    """CASE 26."""
    statuses = (301, 302, 303, 307, 308)
    with Shop() as shop, Server("\n".join(queue(shop, f"Q{s}") for s in statuses)) as server:
        client = server.client()
        for status in statuses:
            for n in range(3):
                shop.behave(f"order-{status}-{n}", f"redirect:{status}")
                no = accepted(client, submission(f"{status}-{n}", biz_type=f"Q{status}"))
                equal(first_outcome(client, no), ("not_processed", f"HTTP_{status}", "RETRY"))
            waiting = task(client, no)
            equal((waiting["retry_count"], f"{shop.url}/elsewhere" in waiting["last_error_msg"]), (0, True))
            alert = eventually(lambda: [a for a in client.get("/v1/alerts").json["items"] if a["subject"] == f"Q{status}"])
            assert len(alert) == 1 and f"{shop.url}/elsewhere" in alert[0]["message"], f"the alert names it: {alert}"
        equal({c["path"] for c in shop.calls}, {"/pay/process"}, "the target was never called")


def retry_after_in_all_its_forms():
    """CASE 24, through a real header; the forms themselves are a table in the unit tests."""
    future = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 600))
    past = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() - 600))
    cases = [(["120"], 120, 146), ([future], 597, 722), (["Thu, 01 Jan 2037 00:00:00 GMT"], 21600, 25921), ([past], 5, 6.1), (["-5"], 5, 6.1),
             (["soon"], 5, 6.1), (["1e3"], 5, 6.1), (["9999999999"], 21600, 25921), (["60", "90"], 90, 109)]

    def serve(peer, connection, n):
        while (body := peer.read_request(connection)) is not None:
            lines = "".join(f"Retry-After: {v}\r\n" for v in json.loads(body)["payload"])
            connection.sendall(f"HTTP/1.1 503 Busy\r\n{lines}Content-Length: 0\r\n\r\n".encode())

    for n, (values, least, most) in enumerate(cases):  # a server each: the host is left alone after a wish
        with RawPeer(serve) as peer, Server(queue(peer, retry="{ delays: [5s], jitter: 20% }", concurrency=1)) as server:
            client = server.client()
            no = accepted(client, submission(n, payload=values))
            outcome, code, to = first_outcome(client, no)
            ignored = values[0] in (past, "-5", "soon", "1e3")
            equal((outcome, code, to), ("failed" if ignored else "not_processed", "HTTP_503", "RETRY"), str(values))
            waiting = task(client, no)
            equal(waiting["retry_count"], 1 if ignored else 0)
            wait = parse(waiting["next_execute_at"]) - parse(waiting["updated_at"])
            assert (4 if ignored else least - 1) <= wait <= most, f"{values}: {wait}"


def parse(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@subset
def a_success_status_without_a_success_body_is_unknown_and_keeps_an_excerpt():
    """CASE 31."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for n, (behaviour, excerpt) in enumerate([('body:{"code":"FAIL"}', '{"code":"FAIL"}'), ("odd", "<html>"), ("plain200", None)]):
            shop.behave(f"order-{n}", behaviour, "ok")
            no = accepted(client, submission(n))
            end = eventually(lambda: [i for i in log_of(client, no) if i["event"] not in ("submit", "claim")])[0]
            equal((end["outcome"], end["code"], end["http_status"], end["to"]), ("unknown", "BAD_REPLY", 200, "RETRY"))
            if excerpt:
                assert end["excerpt"].startswith(excerpt), end["excerpt"]


def a_declared_success_rule_takes_the_whole_body_only():
    with Shop() as shop, Server(queue(shop, success="{ status: 200, body: success }")
                                + queue(shop, "JSON_RULE", "/json", success='{ status: 200, json: { /code: [0, "SUCCESS"] } }')) as server:
        client = server.client()
        for n, (name, body, status) in enumerate([("PAY_CALLBACK", "success", "SUCCESS"), ("PAY_CALLBACK", "\ufeff success\r\n", "SUCCESS"),
                                                  ("PAY_CALLBACK", "no success", "RETRY"), ("JSON_RULE", '{"code":0}', "SUCCESS"),
                                                  ("JSON_RULE", '{"code":"SUCCESS"}', "SUCCESS"), ("JSON_RULE", '{"code":"0"}', "RETRY")]):
            shop.behave(f"order-{n}", f"body:{body}", "hang")
            no = accepted(client, submission(n, biz_type=name))
            end = eventually(lambda: [i for i in log_of(client, no) if i["event"] not in ("submit", "claim")])[0]
            equal(end["to"], status, body)


@subset
def a_connection_closed_before_the_reply_is_one_post_and_an_unknown_result():
    """libcurl would repeat the POST on a dead kept-alive connection; the shop must see it once."""
    def serve(peer, connection, n):
        first = peer.read_request(connection) or b""
        if b'"n": "warm"' in first or b'"n":"warm"' in first:
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")  # now the connection is kept alive …
            peer.read_request(connection)                           # … and dies after the second request arrived

    with RawPeer(serve) as peer, Server(queue(peer, concurrency=1, retry="{ delays: [1h] }")) as server:
        client = server.client()
        until(client, accepted(client, submission("warm")), "SUCCESS")
        no = accepted(client, submission("once"))
        equal(first_outcome(client, no), ("unknown", "RESET", "RETRY"))
        equal(task(client, no)["outcome_unknown"], True)
        equal(len([r for r in peer.requests if b"req-once" in r]), 1, "the shop saw the POST once")


@subset
def each_way_of_not_reaching_a_shop_has_its_own_code():
    """CASE 30 without TLS (certificates are in the network tests): refused, no such name, reset after sending."""
    def close_after(peer, connection, n):
        peer.read_request(connection)

    dead = free_port()
    with RawPeer(close_after) as peer:
        queues = (queue(peer, "RESETS") + queue(type("U", (), {"url": f"http://127.0.0.1:{dead}"}), "REFUSES")
                  + queue(type("U", (), {"url": "http://no-such-host.invalid"}), "NO_NAME"))
        with Server(queues) as server:
            client = server.client()
            got = {}
            for name in ("RESETS", "REFUSES", "NO_NAME"):
                no = accepted(client, submission(name, biz_type=name))
                got[name] = first_outcome(client, no)[:2] + (task(client, no)["outcome_unknown"],)
            no_name = got.pop("NO_NAME")
            equal(got, {"RESETS": ("unknown", "RESET", True), "REFUSES": ("failed", "CONNECT_REFUSED", False)})
            assert no_name[0] == "failed" and no_name[1] in ("DNS_NXDOMAIN", "DNS_TEMPORARY") and not no_name[2], no_name


def huge_endless_and_header_flooded_replies_do_not_grow_the_server():
    """CASE 28: 1 GiB, 5,000 headers, a gzip bomb of 10 MB that would become 10 GB."""
    bomb = gzip.compress(b"\0" * (100 << 20)) * 100  # members behind each other are one stream

    def serve(peer, connection, n):
        while (body := peer.read_request(connection)) is not None:
            if b"huge" in body:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
                for _ in range(1024):
                    connection.sendall(b"x" * (1 << 20))
            elif b"headers" in body:
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-H-%d: %s\r\n" % (i, b"v" * 100) for i in range(5000)) + b"Content-Length: 0\r\n\r\n")
            else:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)

    with RawPeer(serve) as peer, Server(queue(peer, retry="{ delays: [1h] }")) as server:
        client = server.client()
        of_process = f"/proc/{server.process.pid}"
        peak = lambda: next(int(line.split()[1]) for line in open(f"{of_process}/status") if line.startswith("VmHWM"))
        accepted(client, submission("warm", payload={"k": "gzip"}))
        time.sleep(0.5)
        with open(f"{of_process}/clear_refs", "w") as f:
            f.write("5")  # the highest mark begins anew at what is resident now
        before = peak()
        for n, kind in enumerate(["huge", "headers", "gzip"] * 3):
            no = accepted(client, submission(n, payload={"k": kind}))
            outcome, code, _ = first_outcome(client, no)
            equal(outcome, "unknown", kind)
        assert peak() - before < 5 * 1024, f"grew by {peak() - before} KiB"


def odd_bytes_in_a_reply_are_kept_as_text_within_their_limit():
    """CASES 11 and 49: recording an outcome cannot fail because of its content."""
    replies = {"ascii": b"a" * 511 + "界".encode(), "cut": b"b" * 509 + "🍜".encode()[:2], "nul": b"x\0y\xff\xfe", "big": b"z" * 10_000_000,
               "emoji": "𠮷野家🍜 88元".encode()}

    def serve(peer, connection, n):
        while (body := peer.read_request(connection)) is not None:
            text = replies[json.loads(body)["payload"]["k"]]
            try:
                connection.sendall(b"HTTP/1.1 500 Broken\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
            except OSError:
                return

    with RawPeer(serve) as peer, Server(queue(peer, retry="{ delays: [1h] }")) as server:
        client = server.client()
        for kind in replies:
            no = accepted(client, submission(kind, payload={"k": kind}))
            equal(first_outcome(client, no)[:2], ("unknown", "HTTP_500"), kind)
            stood = task(client, no)
            assert len((stood["last_error_msg"] or "").encode()) <= 512
        assert "𠮷野家🍜 88元" in task(client, no)["result_snapshot"]


def a_long_message_of_a_handler_is_cut_at_a_character():
    """CASE 49: at most 512 bytes of the handler's own words are kept, whole characters and the mark of a cut."""
    texts = {"fits": "a" * 512, "ascii": "a" * 513, "three": "a" * 508 + "界界", "four": "b" * 507 + "🍜🍜", "border": "c" * 506 + "界界"}

    def serve(peer, connection, n):
        while (body := peer.read_request(connection)) is not None:
            reply = json.dumps({"outcome": "retry", "code": "LONG", "message": texts[json.loads(body)["payload"]["k"]]}, ensure_ascii=False).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(reply) + reply)

    with RawPeer(serve) as peer, Server(queue(peer, retry="{ delays: [1h] }")) as server:
        client = server.client()
        for kind, said in texts.items():
            no = accepted(client, submission(kind, payload={"k": kind}))
            equal(first_outcome(client, no)[:2], ("failed", "LONG"), kind)
            kept = task(client, no)["last_error_msg"]
            if len(said.encode()) <= 512:
                equal(kept, said, kind)
                continue
            assert 506 <= len(kept.encode()) <= 512 and kept.endswith("…") and said.startswith(kept[:-1]), (kind, kept)


@subset
def unknown_then_nine_refusals_end_with_a_person_as_unknown():
    with Shop() as shop, Server(queue(shop, retry="{ delays: [20ms], jitter: 0% }", max_retry_count=10)) as server:
        client = server.client()
        shop.behave("order-1", "lost", *["status:503"] * 9)
        stuck = until(client, accepted(client, submission()), "MANUAL")
        equal((stuck["manual_code"], stuck["outcome_unknown"], stuck["retry_count"], stuck["last_error_code"]),
              ("OUTCOME_UNKNOWN", True, 10, "HTTP_503"))
        assert all(i["to"] != "FAILED" for i in log_of(client, stuck["task_no"])), "never FAILED"


@subset
def a_callback_before_its_order_is_finished_automatically():
    """CASE 4: the order row appears a little later; a bare 404 of the look-up is a broken check, not "not found"."""
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop))) as server:
        client = server.client()
        shop.order("order-broken", 404)
        early = accepted(client, submission("early"))
        broken = accepted(client, submission("broken"))
        equal(first_outcome(client, early), ("not_found", "ORDER_NOT_FOUND", "RETRY"))
        equal(first_outcome(client, broken), ("not_processed", "CHECK_HTTP_404", "RETRY"))
        shop.order("order-early", "go_on")
        done = until(client, early, "SUCCESS", limit=20)
        equal((done["retry_count"], done["manual_code"]), (0, None))
        equal(len([c for c in shop.calls if c["method"] == "POST"]), 1)


def what_differs_from_the_order_is_never_confirmed_automatically():
    """Amount, currency and trade number, both values in the message (CASE 57's first line for tasks)."""
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop))) as server:
        client = server.client()
        rows = [("equal", {"amount": "64.10", "currency": "CNY"}, "SUCCESS", None), ("under", {"amount": "64.09", "currency": "CNY"}, "MANUAL", "AMOUNT_MISMATCH"),
                ("over", {"amount": "6411", "currency": "CNY"}, "MANUAL", "AMOUNT_MISMATCH"), ("cur", {"amount": "6410", "currency": "USD"}, "MANUAL", "CURRENCY_MISMATCH"),
                ("trade", {"channel_trade_no": "T2"}, "MANUAL", "TRADE_NO_MISMATCH")]
        for name, facts, state, code in rows:
            shop.order(f"order-{name}", "go_on", **facts)
            t = until(client, accepted(client, submission(name, amount=6410, currency="CNY", channel_trade_no="T1")), state)
            equal(t["manual_code"], code, name)
        assert "T1" in t["last_error_msg"] and "T2" in t["last_error_msg"], t["last_error_msg"]


def a_state_that_no_longer_wants_it_goes_to_a_person():
    with Shop() as shop, Server(queue(shop, order_check=look_up(shop))) as server:
        client = server.client()
        shop.order("order-1", "state_conflict", status="REFUNDED")
        stuck = until(client, accepted(client, submission()), "MANUAL")
        equal(stuck["manual_code"], "ORDER_STATE_CONFLICT")
        assert "REFUNDED" in stuck["last_error_msg"]


def a_queue_may_move_single_statuses():
    with Shop() as shop, Server(queue(shop, statuses="{ 404: failed, 500: manual }")) as server:
        client = server.client()
        shop.behave("order-404", "status:404", "ok")
        shop.behave("order-500", "status:500")
        equal(until(client, accepted(client, submission(404)), "SUCCESS")["retry_count"], 1)
        equal(until(client, accepted(client, submission(500)), "MANUAL")["manual_code"], "HTTP_500")


if __name__ == "__main__":
    main(globals())
