"""A shop on loopback whose handlers can be told how to behave: the demonstration's other side, and the tests'.

It keeps its own order book, logs every call it gets (key, fence, start, end) and never de-duplicates by itself, so
whoever reads the log sees each effect that Backstop caused. Behaviours, per order or per path, one per call:

  ok            applies the effect, answers {"outcome": "success"}
  plain200      applies the effect, answers 200 with an empty body
  fail          answers {"outcome": "retry"} without effect
  person        answers {"outcome": "manual"}
  status:NNN    answers that status without effect (retry-after:S may follow: status:503:retry-after:30)
  redirect      answers 302 to /elsewhere (redirect:308: another status)
  odd           answers 200 with an HTML login page
  body:TEXT     applies the effect, answers 200 with that body
  slow:S        waits S seconds, then behaves like ok
  hang          applies the effect and never answers
  lost          applies the effect and closes the connection before answering
  drop          closes the connection without effect
"""
import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


WORDS = {"paid": "order {} marked paid", "shipped": "goods of order {} shipped", "locked": "the order row is locked"}


class Shop:
    """Start with `with Shop(secret="…") as shop:`; everything public is thread-safe."""

    def __init__(self, port=0, secret=None, log_path=None, words=None):
        self.secret, self.lock, self.words = secret, threading.Lock(), words or WORDS
        self.orders, self.scripts, self.calls = {}, {}, []
        self.log = open(log_path, "a", buffering=1, encoding="utf-8") if log_path else None
        self.stopping = threading.Event()
        self.server = Server(("127.0.0.1", port), handler_of(self))
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        if self.log:
            self.log.close()

    def behave(self, key, *behaviours):
        """The next calls for an order number (or a path) behave so, one after the other; the last one stays."""
        with self.lock:
            self.scripts[key] = list(behaviours)

    def order(self, order_no, verdict="go_on", **facts):
        """What the look-up says of an order: go_on, finished, not_found, state_conflict, or a raw status like 404."""
        with self.lock:
            self.orders[order_no] = {"verdict": verdict, **facts}

    def calls_of(self, request_id):
        with self.lock:
            return [c for c in self.calls if c.get("key") == request_id]

    def wait_for(self, true, limit=20.0):
        """Polls until true(self.calls) holds; AssertionError with what was seen otherwise."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            with self.lock:
                if true(self.calls):
                    return list(self.calls)
            time.sleep(0.01)
        raise AssertionError(f"the shop saw only {len(self.calls)} calls in {limit} s: {self.calls[-5:]}")

    def next_behaviour(self, order_no, path):
        with self.lock:
            for key in (order_no, path):
                script = self.scripts.get(key)
                if script:
                    return script.pop(0) if len(script) > 1 else script[0]
        return "ok"

    def begin(self, call):
        with self.lock:
            self.calls.append(call)
        self.write({"at": "start", **{k: v for k, v in call.items() if k not in ("raw", "payload")}})

    def end(self, call):
        with self.lock:
            call["end"] = time.time()
        self.write({"at": "end", **{k: v for k, v in call.items() if k not in ("raw", "payload")}})

    def write(self, entry):
        if self.log and not self.log.closed:
            self.log.write(json.dumps(entry) + "\n")

    def apply(self, call):
        """The business effect. Never refuses a second one: the log shows it."""
        with self.lock:
            call["effect"] = True
            order = self.orders.setdefault(call["order_no"], {"verdict": "go_on"})
            order["effects"] = order.get("effects", 0) + 1
            order["verdict"] = "finished"

    def signed(self, headers, body):
        if not self.secret:
            return None
        key = base64.b64decode(self.secret[6:]) if self.secret.startswith("whsec_") else self.secret.encode()
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        want = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
        fresh = abs(time.time() - int(headers["webhook-timestamp"])) <= 300
        return fresh and want in (headers.get("webhook-signature") or "").split(" ")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, client_address):
        pass  # a caller that leaves in the middle is part of the show


def payload_slice(raw):
    """The exact bytes of the body's payload member, which Backstop writes last but one, before `order`."""
    start = raw.find(b'"payload":')
    return raw[start + 10:raw.rfind(b',"order":')] if start >= 0 else None


def handler_of(shop):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def log_message(self, *_):
            pass

        def reply(self, status, body=b"", content_type="application/json", headers=()):
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response_only(status)
            for name, value in (("Content-Type", content_type), ("Content-Length", str(len(body))), *headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def close_now(self):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def do_GET(self):
            order_no = unquote(self.path.split("?")[0].rsplit("/", 1)[-1])
            call = {"method": "GET", "path": self.path, "order_no": order_no, "start": time.time(),
                    "signed": shop.signed(self.headers, b"")}
            shop.begin(call)
            with shop.lock:
                order = dict(shop.orders.get(order_no, {"verdict": "not_found"}))
            verdict = order.pop("verdict")
            if isinstance(verdict, int):
                self.reply(verdict, b"no such page", "text/plain")
            else:
                known = {k: v for k, v in order.items() if k in ("status", "amount", "currency", "channel_trade_no")}
                self.reply(200, {"verdict": verdict, **known})
            shop.end(call)

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                body = json.loads(raw)
            except (ValueError, RecursionError):
                body = {}
            call = {"method": "POST", "path": self.path, "key": self.headers.get("Idempotency-Key"),
                    "fence": int(self.headers.get("Backstop-Fence") or 0), "task_no": self.headers.get("webhook-id"),
                    "attempt": int(self.headers.get("Backstop-Attempt") or 0), "biz_type": body.get("biz_type"),
                    "order_no": body.get("order_no") or body.get("biz_id"), "raw": raw, "start": time.time(),
                    "unknown": body.get("outcome_unknown"), "signed": shop.signed(self.headers, raw)}
            call["payload"] = payload_slice(raw)
            call["behaviour"] = shop.next_behaviour(call["order_no"], self.path)
            shop.begin(call)
            self.act(call, call["behaviour"])
            shop.end(call)

        def act(self, call, behaviour):
            what, _, rest = behaviour.partition(":")
            if what == "slow":
                shop.stopping.wait(float(rest))
                what = "ok"
            if what in ("ok", "plain200", "body", "hang", "lost"):
                shop.apply(call)
            if what == "ok":
                done = shop.words["shipped" if call["path"] == "/ship" else "paid"].format(call["order_no"])
                self.reply(200, {"outcome": "success", "effect": done})
            elif what == "plain200":
                self.reply(200)
            elif what == "body":
                self.reply(200, rest.encode(), "text/plain")
            elif what == "fail":
                self.reply(200, {"outcome": "retry", "code": "DB_LOCKED", "message": shop.words["locked"]})
            elif what == "person":
                self.reply(200, {"outcome": "manual", "code": "NO_STOCK", "message": "nothing left to deliver"})
            elif what == "status":
                status, *more = rest.split(":")
                headers = [("Retry-After", more[1])] if len(more) == 2 else []
                self.reply(int(status), {"error": f"told to answer {status}"}, headers=headers)
            elif what == "redirect":
                self.reply(int(rest or 302), b"", headers=[("Location", f"{shop.url}/elsewhere")])
            elif what == "odd":
                self.reply(200, b"<html><body>please log in</body></html>", "text/html")
            elif what == "hang":
                shop.stopping.wait(3600)
                self.close_now()
            elif what in ("lost", "drop"):
                self.close_now()
            else:
                raise ValueError(f"unknown behaviour {behaviour}")

    return Handler


def main():
    import argparse
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--port", type=int, default=9000)
    args.add_argument("--secret")
    args.add_argument("--log")
    args = args.parse_args()
    with Shop(args.port, args.secret, args.log) as shop:
        print(f"the shop answers at {shop.url}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
