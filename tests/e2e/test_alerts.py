"""Alerts end to end: what begins is told to a signed webhook once, and its end too. CASE 95."""
import base64
import hashlib
import hmac
import http.server
import json
import signal
import threading
import time

from harness import Server, Shop, accepted, equal, eventually, main, queue, submission, subset, until

KEY = "receiver-secret-0123456789"


class Receiver:
    """Takes alerts, or not: answers `status`, keeps what came."""

    def __init__(self):
        self.status, self.requests, self.pings = 204, [], 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append({"headers": dict(self.headers), "body": body, "status": outer.status})
                self.answer(outer.status)

            def do_GET(self):
                outer.pings += 1
                self.answer(200)

            def answer(self, status):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                if status == 302:
                    self.send_header("Location", outer.url + "elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def heard(self):
        """(phase, kind, subject) of all that was taken."""
        return [(a["phase"], a["kind"], a["subject"]) for r in self.requests if 200 <= r["status"] < 300
                for a in json.loads(r["body"])["alerts"]]


def alerts(receiver, more="", every="200ms", wait="300ms"):
    return f"""alerts:
  check_every: {every}
  group_wait: {wait}
  webhooks:
    ops: {{ url: "{receiver.url}", secret: "{KEY}", timeout: 2s }}
{more}"""


def signed(request):
    h = {k.lower(): v for k, v in request["headers"].items()}
    text = f"{h['webhook-id']}.{h['webhook-timestamp']}.".encode() + request["body"]
    return h["webhook-signature"] == "v1," + base64.b64encode(hmac.new(KEY.encode(), text, hashlib.sha256).digest()).decode()


@subset
def a_pause_and_its_end_are_told_once_each_with_a_signature_that_verifies():
    with Shop() as shop, Receiver() as receiver, Server(queue(shop), extra=alerts(receiver)) as server:
        client = server.client()
        equal(client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "upgrade"}).status, 200)
        eventually(lambda: receiver.heard(), what="the alert")
        equal(client.post("/v1/queues/PAY_CALLBACK/resume", {"reason": "done"}).status, 200)
        eventually(lambda: len(receiver.heard()) > 1, what="the recovery")
        time.sleep(1.5)
        equal(receiver.heard(), [("raised", "pause", "PAY_CALLBACK"), ("recovered", "pause", "PAY_CALLBACK")])
        for request in receiver.requests:
            assert signed(request), request
            h = {k.lower(): v for k, v in request["headers"].items()}
            assert abs(int(h["webhook-timestamp"]) - time.time()) < 60, h
        body = json.loads(receiver.requests[0]["body"])
        equal((body["version"], len(body["alerts"])), (1, 1))
        assert "upgrade" in body["alerts"][0]["message"], body
        items = client.get("/v1/alerts?open=false").json["items"]
        equal([(a["kind"], a["open"], sorted((d["phase"], d["state"], d["attempts"]) for d in a["deliveries"])) for a in items],
              [("pause", False, [("raised", "sent", 1), ("recovered", "sent", 1)])])
        equal(client.get("/v1/alerts?open=true").json["items"], [])
        shown = server.cli("alert", "list", "--open", "false")[1]
        assert "RECEIVER" in shown and shown.count("sent") == 2, shown
        assert 'backstop_alert_deliveries_total{state="sent"} 2' in client.get("/metrics").raw.decode()


def many_tasks_that_need_a_person_are_one_alert():
    with Shop() as shop, Receiver() as receiver, Server(queue(shop), extra=alerts(receiver, wait="1s")) as server:
        shop.behave("/pay/process", "status:422")
        client = server.client()
        numbers = [accepted(client, submission(n)) for n in range(40)]
        for no in numbers:
            until(client, no, "MANUAL")
        eventually(lambda: ("raised", "manual", "PAY_CALLBACK HTTP_422") in receiver.heard(), what="the alert")
        time.sleep(2)
        equal([h for h in receiver.heard() if h[1] == "manual"], [("raised", "manual", "PAY_CALLBACK HTTP_422")])
        row = [a for a in client.get("/v1/alerts").json["items"] if a["kind"] == "manual"]
        equal([a["count"] for a in row], [40])


def a_receiver_that_fails_is_tried_again_also_after_a_kill():
    with Shop() as shop, Receiver() as receiver:
        server = Server(queue(shop), extra=alerts(receiver))
        with server:
            client = server.client()
            receiver.status = 302
            client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "x"})
            eventually(lambda: [d for a in client.get("/v1/alerts").json["items"] for d in a["deliveries"]
                                if d["state"] == "pending" and d["code"] == "HTTP_302"], what="a try that failed")
            server.kill()
            receiver.status = 200
            server.start()
            eventually(lambda: receiver.heard(), 30, "the alert after the restart")
            equal(receiver.heard(), [("raised", "pause", "PAY_CALLBACK")])
            first, last = receiver.requests[0], receiver.requests[-1]
            equal(first["headers"]["webhook-id"], last["headers"]["webhook-id"], "the same message keeps its id")
            assert "elsewhere" not in server.log(), "redirects are not followed"


def signs_of_life_come_while_it_serves_and_secrets_stay_out_of_the_log():
    with Shop() as shop, Receiver() as receiver:
        ping = f'  ping: {{ url: "{receiver.url}ping-canary", every: 1s }}\n'
        with Server(queue(shop), extra=alerts(receiver, ping)) as server:
            eventually(lambda: receiver.pings >= 2, what="two signs of life")
            assert "backstop_ping_ok 1" in server.client().get("/metrics").raw.decode()
            log = server.log()
            assert KEY not in log and "ping-canary" not in log, log
        time.sleep(0.2)
        before = receiver.pings
        time.sleep(1.5)
        equal(receiver.pings, before, "none when it has stopped")


def a_reload_takes_a_receiver_away():
    with Shop() as shop, Receiver() as receiver, Server(queue(shop), extra=alerts(receiver)) as server:
        client = server.client()
        receiver.status = 500
        client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "x"})
        eventually(lambda: receiver.requests, what="a try")
        server.write_config(queue(shop))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: [d for a in client.get("/v1/alerts").json["items"] for d in a["deliveries"]
                            if d["state"] == "given_up" and d["code"] == "REMOVED"], what="giving up")


def a_paused_queue_that_went_from_the_file_can_be_resumed_and_its_alert_ends():
    with Shop() as shop, Receiver() as receiver, Server(queue(shop) + queue(shop, "SHIP_GOODS", "/ship"), extra=alerts(receiver)) as server:
        client = server.client()
        equal(client.post("/v1/queues/SHIP_GOODS/pause", {"reason": "upgrade"}).status, 200)
        eventually(lambda: receiver.heard(), what="the alert")
        server.write_config(queue(shop), alerts(receiver))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: client.get("/v1/queues/SHIP_GOODS").json["configured"] is False, what="the queue's end")
        equal(client.post("/v1/queues/SHIP_GOODS/pause", {"reason": "x"}).status, 404)
        equal(client.post("/v1/queues/NEVER_SEEN/resume", {"reason": "x"}).status, 404)
        answer = client.post("/v1/queues/SHIP_GOODS/resume", {"reason": "it is gone"})
        equal((answer.status, answer.json["paused"], answer.json["configured"]), (200, False, False))
        eventually(lambda: len(receiver.heard()) > 1, what="the recovery")
        equal(receiver.heard(), [("raised", "pause", "SHIP_GOODS"), ("recovered", "pause", "SHIP_GOODS")])


def a_reload_takes_over_the_check_and_the_ping_at_once():
    with Shop() as shop, Receiver() as receiver, Server(queue(shop), extra=alerts(receiver, every="1h")) as server:
        client = server.client()
        client.post("/v1/queues/PAY_CALLBACK/pause", {"reason": "x"})
        time.sleep(1.2)
        equal((receiver.heard(), receiver.pings), ([], 0))
        server.write_config(queue(shop), alerts(receiver, f'  ping: {{ url: "{receiver.url}", every: 1h }}\n', every="200ms"))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: receiver.heard() and receiver.pings == 1, 5, "the alert and the sign of life")
        eventually(lambda: "backstop_ping_ok 1" in client.get("/metrics").raw.decode(), 5, "the figure")
        server.write_config(queue(shop), alerts(receiver))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "backstop_ping_ok" not in client.get("/metrics").raw.decode(), 5, "the figure's end")


if __name__ == "__main__":
    main(globals())
