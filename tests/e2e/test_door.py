"""The one door: every rule of a submission with good and bad values, exact bytes, limits, batches. Nothing is half accepted."""
import base64
import hashlib
import json
import re
import socket
import time

from harness import (Client, Server, Shop, accepted, at, equal, eventually, main, queue, submission, subset, task, until)

HANDED_ON = [b'{"amount":1.10,"id":12345678901234567890123,"a":1,"a":2}', b"[1e400,-0.0]", b'{"n":"\\ud83d"}', b'{"memo":"a\\u0000b"}',
             '{"dish":"𠮷野家🍜 88元"}'.encode(), b'{ "spaced" :\t[ 1 , 2 ]\r\n }', b"null", b'"text"', b"17", b"true", b'{"/":"\\/"}']


def raw_submission(n, payload):
    return b'{"request_id":"raw-%d","biz_type":"PAY_CALLBACK","biz_id":"raw-%d","payload":%s}' % (n, n, payload)


@subset
def the_handler_gets_the_payload_byte_for_byte():
    """Byte for byte and by SHA-256; CASE 11: 4-byte text in a payload; CASE 70: its long numbers keep their last digits."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for n, payload in enumerate(HANDED_ON):
            reply = client.post("/v1/tasks", raw=raw_submission(n, payload))
            equal(reply.status, 201, reply.raw[:400])
            until(client, reply.json["task_no"], "SUCCESS")
            got = next(c["payload"] for c in shop.calls if c["key"] == f"raw-{n}")
            equal(got, payload)
            equal(hashlib.sha256(got).hexdigest(), hashlib.sha256(payload).hexdigest())
            shown = client.get(f"/v1/tasks/{reply.json['task_no']}").raw
            assert b'"payload":' + payload in shown, shown


def bytes_that_are_no_json_are_handed_on_as_base64():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        data = bytes(range(256))
        no = accepted(client, {"request_id": "b", "biz_type": "PAY_CALLBACK", "biz_id": "b", "payload_base64": base64.b64encode(data).decode()})
        until(client, no, "SUCCESS")
        equal(json.loads(shop.calls[0]["raw"])["payload_base64"], base64.b64encode(data).decode())
        equal(task(client, no)["payload_base64"], base64.b64encode(data).decode())
        empty = accepted(client, {"request_id": "none", "biz_type": "PAY_CALLBACK", "biz_id": "none"})
        until(client, empty, "SUCCESS")
        equal(json.loads(next(c["raw"] for c in shop.calls if c["key"] == "none"))["payload"], None)


def text(n):
    return "é" * (n // 2) + "x" * (n % 2)


# member, good values, bad values with the field that is named
RULES = [
    ("biz_type", ["PAY_CALLBACK", "A", "a.b-c_1"], ["", "1ABC", "a b", "Ä", "x" * 33, "a/b", 5, None]),
    ("biz_id", ["x", text(64), "🍜"], ["", text(65), "a\u0000b", "a\nb", "\u007f", "\u0085", 7, None]),
    ("request_id", ["!", "~" * 128, "a/b?c"], ["", "x" * 129, "a b", "é", "a\tb", 1, None]),
    ("merchant_no", ["m", text(64)], ["", text(65), "\u0001", 1, None, []]),
    ("order_no", ["o", text(64), "812345678901234567"], ["", text(65), "a\u0000", 812345678901234567]),
    ("payment_no", ["p", text(64)], ["", text(65), "\n"]),
    ("channel", ["wechat-main", text(64)], ["", text(65), "\u001b"]),
    ("channel_trade_no", ["t", text(64)], ["", text(65), "\r"]),
    ("refund_no", ["r", text(64)], ["", text(65), "\u0000"]),
    ("effect_key", ["e", text(128)], ["", text(129), "\u0000", 1]),
    ("serial_key", ["s", text(128)], ["", text(129), "\u0000"]),
    ("amount", [0, 1, "0", "6410", 9223372036854775807, "9223372036854775807"], [-1, "-1", 1.5, "1.5", "1e3", "", " 1", "9223372036854775808", True, "٣"]),
    ("currency", ["CNY", "JPY", "KWD"], ["", "cny", "XYZ", "CN", 156]),
    ("source", ["API", "CALLBACK", "RECON", "PATROL", "MANUAL"], ["REDIS", "INBOX", "api", "", 1]),
    ("priority", [0, 1, 2, 3], [-1, 4, "1", 1.5, None]),
    ("max_retry_count", [1, 100], [0, 101, "5", 2.5]),
    ("delay", ["0s", "1s", "366d"], ["-1s", "367d", "1y", "soon", "", 5, "99999999999999999999d"]),
    ("execute_at", [at(minutes=-2), at(), at(days=1), at(days=200, zone=8), at(days=365)],
     [at(minutes=-30), at(days=-2000), at(days=367), at(days=1500), "tomorrow", re.sub("-..-", "-13-", at(days=1), count=1), 1, at(days=1)[:10]]),
    ("extra_data", [{}, {"k": [1, {"x": None}]}, {"k": "x" * 4000}], [[], "x", {"k": "x" * 4097}, None]),
    ("park", [True, False], ["true", 1, None]),
    ("payload_base64", ["", "AA==", "AAEC"], ["A", "AA", "AA=", "A*==", " AA==", 5]),
    ("parent_task_no", [], ["x", "-1", "99999999999999999999", 5]),
]


def every_member_takes_what_its_rule_allows_and_names_itself_otherwise():
    with Shop() as shop, Server(queue(shop) + queue(shop, "A") + queue(shop, '"a.b-c_1"')) as server:
        client, n = server.client(), 0
        for member, good, bad in RULES:
            for value in good:
                n += 1
                body = {**submission(f"g{n}"), member: value}
                if member in ("amount", "currency"):
                    body = {"amount": 1, "currency": "CNY", **body}
                if member == "payload_base64":
                    del body["payload"]
                reply = client.post("/v1/tasks", body)
                equal(reply.status, 201, f"{member} = {value!r}: {reply.raw[:300]}")
            for value in bad:
                n += 1
                body = {**submission(f"b{n}"), "amount": 1, "currency": "CNY", member: value}
                if member == "payload_base64":
                    del body["payload"]
                reply = client.post("/v1/tasks", body)
                equal(reply.status, 422, f"{member} = {value!r}: {reply.raw[:300]}")
                assert member in [e["field"] for e in reply.json["errors"]], f"{member} = {value!r}: {reply.raw}"
                assert all(set(e) == {"field", "code", "message"} for e in reply.json["errors"])
        for member in ("biz_type", "biz_id", "request_id"):
            body = submission("missing")
            del body[member]
            equal([(e["field"], e["code"]) for e in client.post("/v1/tasks", body).json["errors"]], [(member, "REQUIRED")])
        equal(client.get("/v1/tasks?request_id=req-missing").json["items"], [], "nothing half accepted")
        for present, absent in (("amount", "currency"), ("currency", "amount")):
            reply = client.post("/v1/tasks", {**submission("money"), present: {"amount": 5, "currency": "CNY"}[present]})
            equal((reply.status, [e["field"] for e in reply.json["errors"]]), (422, [absent]))
        for pair in ({"execute_at": at(days=1), "delay": "1s"}, {"payload_base64": "AA=="}):
            equal(client.post("/v1/tasks", {**submission("pair"), **pair}).status, 422, str(pair))


@subset
def unknown_and_repeated_members_are_refused():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        unknown = client.post("/v1/tasks", {**submission(), "priorty": 1})
        equal([(e["field"], e["code"]) for e in unknown.json["errors"]], [("priorty", "UNKNOWN_MEMBER")])
        twice = client.post("/v1/tasks", raw=b'{"request_id":"a","request_id":"b","biz_type":"PAY_CALLBACK","biz_id":"x"}')
        equal([(e["field"], e["code"]) for e in twice.json["errors"]], [("request_id", "DUPLICATE_MEMBER")])
        several = client.post("/v1/tasks", {"biz_type": "9", "priority": 7, "amount": -1})
        equal({e["field"] for e in several.json["errors"]} >= {"biz_type", "biz_id", "request_id", "priority", "amount"}, True, several.raw)


@subset
def what_is_not_json_is_400_with_the_place():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for body in (b"", b"{", b'{"a":01}', b'{"a":1}x', b"[1]", b'"x"', b"\xef\xbb\xbf{}", b'{"a":"\xc0\xaf"}', b'{"a":"\xed\xa0\x80"}', b"{'a':1}",
                     b'{"a":NaN}', b"{\"a\":1,}", b'{"payload":' + b"[" * 100_000, b'{"a":"\x01"}'):
            reply = client.post("/v1/tasks", raw=body)
            equal((reply.status, reply.headers["Content-Type"]), (400, "application/problem+json"), f"{body[:40]!r}: {reply.raw[:200]}")
            assert {"type", "title", "status", "code", "detail"} <= set(reply.json), reply.raw


def deeply_nested_json_is_kept_like_any_other():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        deep = b"[" * 50_000 + b"]" * 50_000
        reply = client.post("/v1/tasks", raw=raw_submission(1, deep))
        equal(reply.status, 201, reply.raw[:300])
        shop.wait_for(lambda calls: calls)
        equal(shop.calls[0]["payload"], deep)


def bodies_over_the_limit_are_413_and_the_connection_rules_hold():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        fits = raw_submission(1, b'"' + b"x" * ((256 << 10) - 2) + b'"')
        equal(client.post("/v1/tasks", raw=fits).status, 201, "256 KiB of payload")
        over = raw_submission(2, b'"' + b"x" * ((256 << 10) - 1) + b'"')
        reply = client.post("/v1/tasks", raw=over)
        equal((reply.status, [e["field"] for e in reply.json["errors"]]), (422, ["payload"]))
        for path, limit in (("/v1/tasks", 512 << 10), ("/v1/tasks/batch", 8 << 20)):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:  # Content-Length too big: 413 before any of the body
                s.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\nContent-Type: application/json\r\n"
                          f"Content-Length: {limit + 1}\r\n\r\n".encode())
                equal(s.recv(65536)[:12], b"HTTP/1.1 413", path)
        client.close()
        for size, expected in ((700 << 10, b"413"), (2 << 20, b"413"), (3 << 20, b"")):  # chunked: read to four times the limit, then 413; beyond: closed
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
                s.sendall(f"POST /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\nContent-Type: application/json\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n".encode())
                sent, data = 0, b""
                try:
                    while sent < size:
                        s.sendall(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
                        sent += 0x8000
                    s.sendall(b"0\r\n\r\n")
                    data = s.recv(65536)
                except OSError:
                    data = b""
                equal(data.split(b" ")[1:2], [expected] if expected else [], f"{size}: {data[:100]!r}")
        equal(client.get("/healthz").status, 200)


@subset
def a_batch_answers_item_by_item():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        first = accepted(client, submission("old"))
        items = [submission("x"), submission("old"), {**submission("old"), "order_no": "other"}, {**submission("y"), "priority": 9}, submission("x")]
        reply = client.post("/v1/tasks/batch", items)
        equal(reply.status, 200, reply.raw[:500])
        got = reply.json["items"]
        equal([(i["index"], i["status"]) for i in got], [(0, 201), (1, 200), (2, 409), (3, 422), (4, 200)])
        equal((got[1]["task_no"], got[2]["code"], got[3]["field"], got[4]["task_no"]), (first, "REQUEST_CONFLICT", "priority", got[0]["task_no"]))
        lines = b'{"request_id":"n1","biz_type":"PAY_CALLBACK","biz_id":"n1"}\n\nnot json\r\n{"request_id":"n2","biz_type":"PAY_CALLBACK","biz_id":"n2"}'
        reply = client.post("/v1/tasks/batch", raw=lines, content_type="application/x-ndjson")
        equal([(i["status"], i.get("code")) for i in reply.json["items"]], [(201, None), (422, "NOT_JSON"), (201, None)], reply.raw)
        equal(client.post("/v1/tasks/batch", [submission(f"z{n}") for n in range(1000)]).status, 200)
        many = client.post("/v1/tasks/batch", [submission(f"q{n}") for n in range(1001)])
        equal((many.status, many.json["code"]), (413, "TOO_BIG"))
        equal(client.get("/v1/tasks?request_id=req-q0").json["items"], [])
        equal(client.post("/v1/tasks/batch", raw=b"[{}").status, 400)


@subset
def an_unknown_queue_is_refused_or_parked_for_a_person():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        refused = client.post("/v1/tasks", submission(biz_type="NO_SUCH"))
        equal((refused.status, [(e["field"], e["code"]) for e in refused.json["errors"]]), (422, [("biz_type", "UNKNOWN_QUEUE")]))
        parked = client.post("/v1/tasks", submission(biz_type="NO_SUCH", park=True))
        equal((parked.status, parked.json["task_status"], parked.json["manual_code"]), (201, "MANUAL", "UNKNOWN_QUEUE"))
        equal([(i["event"], i["to"]) for i in client.get(f"/v1/tasks/{parked.json['task_no']}/log").json["items"]], [("park", "MANUAL")])


def four_byte_text_round_trips_in_every_member():
    """CASE 11, what concerns submissions: emoji and rare Han in the snapshot, in the columns, in a filter, at the handler."""
    with Shop() as shop, Server(queue(shop)) as server:
        client, subject = server.client(), "𠮷野家🍜 88元"
        names = ("biz_id", "merchant_no", "order_no", "payment_no", "channel", "channel_trade_no", "refund_no", "effect_key", "serial_key")
        body = {**submission(), **{n: subject for n in names}, "payload": {"subject": subject}, "extra_data": {"k": subject}}
        no = accepted(client, body)
        until(client, no, "SUCCESS")
        shown = task(client, no)
        for n in (*names, "payload", "extra_data"):
            equal(shown[n], f"s:{subject}:{subject}" if n == "serial_key" else body[n], n)
        sent = json.loads(shop.calls[0]["raw"])
        equal({n: sent[n] for n in names if n in sent and n != "serial_key"}, {n: subject for n in names if n in sent and n != "serial_key"})
        assert json.dumps({"subject": subject}).encode() == shop.calls[0]["payload"]
        from urllib.parse import quote
        equal([t["task_no"] for t in client.get("/v1/tasks?order_no=" + quote(subject)).json["items"]], [no])


@subset
def sixty_four_bit_numbers_are_exact_strings():
    """CASE 70: order 812345678901234567, an amount of 9007199254740995, ids in JSON and in the address."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        reply = client.post("/v1/tasks", submission(order_no="812345678901234567", amount=9007199254740995, currency="CNY"))
        equal(reply.status, 201, reply.raw)
        no = reply.json["task_no"]
        assert int(no) > 1 << 53, "task numbers need more than a browser's 53 bits"
        done = until(client, no, "SUCCESS")
        for raw in (reply.raw, client.get(f"/v1/tasks/{no}").raw, client.get("/v1/tasks?order_no=812345678901234567").raw):
            for text in (f'"task_no":"{no}"', '"order_no":"812345678901234567"', '"amount":"9007199254740995"'):
                assert text.encode() in raw, f"{text} is not in {raw[:600]}"
            equal(re.findall(rb"\":-?\d{16,}", raw), [], "no number of more than 15 digits stands without quotes")
        equal(done["task_no"], no)
        equal(client.get(f"/v1/tasks/{int(no) + 1}").status, 404, "the neighbour is another task")
        sent = json.loads(shop.calls[0]["raw"])
        equal((sent["task_no"], sent["order_no"], sent["amount"]), (no, "812345678901234567", "9007199254740995"))


def identifiers_are_bytes():
    """Promise 9: five ids that differ by case, blank or normal form are five."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        ids = ["a", "A", "a ", "\u00e9", "e\u0301"]
        numbers = [accepted(client, submission(n, biz_id=v, order_no=v)) for n, v in enumerate(ids)]
        equal(len(set(numbers)), 5)
        from urllib.parse import quote
        for no, v in zip(numbers, ids):
            found = client.get("/v1/tasks?order_no=" + quote(v)).json["items"]
            equal([(t["task_no"], t["order_no"]) for t in found], [(no, v)])


def half_of_a_surrogate_pair_is_no_identifier():
    """Two of them would become the same replacement character, and two effects one."""
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for member in ("biz_id", "order_no", "effect_key", "channel_trade_no"):
            body = json.dumps(submission("s", **{member: "\ud800"})).encode()
            reply = client.call("POST", "/v1/tasks", raw=body)
            equal((reply.status, [(e["field"], e["code"]) for e in reply.json.get("errors", [])]), (422, [(member, "BAD_UTF8")]), reply.raw)
        equal(client.call("POST", "/v1/tasks", raw=json.dumps(submission("p", biz_id="\U0001f600", payload="\ud800")).encode()).status, 201)
        equal(client.get("/v1/tasks").json["items"][0]["biz_id"], "\U0001f600")


def the_idempotency_key_header_is_the_request_id():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        body = {"biz_type": "PAY_CALLBACK", "biz_id": "k"}
        first = client.post("/v1/tasks", body, headers={"Idempotency-Key": '"key-1"'})
        equal((first.status, first.json["request_id"]), (201, "key-1"))
        equal(client.post("/v1/tasks", body, headers={"Idempotency-Key": "key-1"}).json["duplicate"], "request")
        equal(client.post("/v1/tasks", {**body, "request_id": "other"}, headers={"Idempotency-Key": "key-1"}).status, 422)


def a_header_that_says_two_things_is_refused():
    with Shop() as shop, Server(queue(shop)) as server:
        client, raw = server.client(), json.dumps(submission()).encode()
        for name, first, second in (("Idempotency-Key", "req-1", "req-2"), ("Authorization", f"Bearer {client.token}", "Bearer x"),
                                    ("Content-Type", "application/json", "text/plain")):
            lines = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json", "Content-Length": len(raw), "Host": "x"}
            lines.pop(name, None)
            head = "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + f"{name}: {first}\r\n{name.lower()}: {second}\r\n"
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
                s.sendall(f"POST /v1/tasks HTTP/1.1\r\n{head}\r\n".encode() + raw)
                reply = s.recv(65536)
            equal((reply[:12], b"BAD_REQUEST" in reply), (b"HTTP/1.1 400", True), name)
        equal(client.get("/v1/tasks").json["items"], [])


def any_number_of_parameters_is_answered_at_once():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for n in (1, 60, 150, 1000, 3000):
            began = time.monotonic()
            equal((client.get("/v1/tasks?" + "a=b&" * n).status, time.monotonic() - began < 5), (400, True), str(n))


def content_type_method_and_path_are_checked():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        equal(client.post("/v1/tasks", submission(), content_type="text/plain").status, 415)
        wrong = client.call("DELETE", "/v1/tasks")
        equal((wrong.status, set(wrong.headers["Allow"].replace(" ", "").split(",")) >= {"GET", "POST"}), (405, True))
        equal(client.get("/v1/nothing").status, 404)
        equal(client.get("/v1/tasks/12345").status, 404)
        equal(client.get("/v1/tasks/xyz").status, 404)
        equal(client.get("/v1/tasks?no_such=1").status, 400)
        equal(client.get("/v1/tasks?limit=201").status, 400)
        equal(client.get("/v1/tasks?status=DONE").status, 400)
        equal(client.get("/v1/tasks?cursor=%00").status, 400)
        equal(Client(server.port).get("/v1/tasks").status, 401)
        equal(Client(server.port, "bst_" + "0" * 64).get("/v1/tasks").status, 401)


if __name__ == "__main__":
    main(globals())
