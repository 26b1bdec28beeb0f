"""Starts Backstop and, unless --no-demo, the demonstration shop, submits failed payment callbacks as they happen in real
life, and shows live how they are retried, repaired, or handed to a person. Ends with Ctrl-C."""
import argparse
import json
import locale
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shop import Shop  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

CONFIG = """\
listen: 127.0.0.1:{port}
store: sqlite:{data}/backstop.db
grace: 3s
queues:
  PAY_CALLBACK:            # the payment is known, the order is not right yet
    handler: {shop}/pay/process
    secret: {secret}
    order_check: {{ url: "{shop}/orders/{{order_no}}", timeout: 2s }}
    call_timeout: 3s
    lease: 10s
    order_not_found_grace: 12s
    retry: {{ delays: [2s, 4s, 6s, 8s], jitter: 20% }}
    max_retry_count: 4
  SHIP_GOODS:              # the order is paid, the delivery failed
    handler: {shop}/ship
    secret: {secret}
    order_check: none
    call_timeout: 2s
    lease: 10s
    retry: {{ delays: [1s, 2s, 4s], jitter: 20% }}
    max_retry_count: 3
"""

WORDS = {
    "en": {
        "where": "Backstop answers at {url}   (token: {token})", "log": "its log: {log}",
        "try": "look closer in another terminal:", "stop": "Ctrl-C ends it.",
        "head": f"{'time':<9}{'order':<14}{'what happened':<22}{'state':<24}details",
        "sum": "so far: ", "lost": "the server ended unexpectedly; its log says:",
        "submit": "accepted", "claim": "execution {attempt}", "succeeded": "repaired", "already_finished": "was right already",
        "failed": "failed", "failed_last": "failed, tries spent", "escalate": "handed to a person", "unknown": "no clear answer",
        "unknown_last": "unknown, to a person", "needs_person": "needs a person", "not_processed": "not processed",
        "released_unsent": "given back", "released_sent": "given back, unknown", "lease_expired": "worker lost",
        "close": "closed by hand", "resolve": "resolved by hand", "retry_fresh": "retried by hand", "hold": "held",
    },
    "zh": {
        "where": "Backstop 已启动:{url}   (令牌:{token})", "log": "运行日志:{log}",
        "try": "可在另一个终端查看:", "stop": "按 Ctrl-C 结束。",
        "head": f"{'时间':<8}{'订单号':<12}{'经过':<16}{'状态':<22}说明",
        "sum": "目前:", "lost": "服务意外退出,日志如下:",
        "submit": "已受理", "claim": "第 {attempt} 次执行", "succeeded": "补单成功", "already_finished": "订单已是终态",
        "failed": "执行失败", "failed_last": "重试次数用尽", "escalate": "转人工处理", "unknown": "结果不明",
        "unknown_last": "结果不明,转人工", "needs_person": "需人工处理", "not_processed": "未受理,不计次数",
        "released_unsent": "退回未发", "released_sent": "退回,结果不明", "lease_expired": "执行者失联,回收",
        "close": "人工关闭", "resolve": "人工处理完毕", "retry_fresh": "人工重试", "hold": "人工挂起",
    },
}
COLOURS = {"SUCCESS": "32", "RETRY": "33", "MANUAL": "31;1", "FAILED": "31", "PROCESSING": "36"}


def cases(shop):
    """Failed callbacks: (delay in seconds, submission)."""
    pay = lambda n, **more: {"request_id": f"notify-{n}-{os.getpid()}", "biz_type": "PAY_CALLBACK", "biz_id": n, "order_no": n,
                             "source": "CALLBACK", "channel": "wechat-main", "channel_trade_no": f"42000{n[1:]}", "amount": "6410",
                             "currency": "CNY", "payload": {"out_trade_no": n, "trade_state": "SUCCESS"}, **more}
    ship = lambda n: {"request_id": f"ship-{n}-{os.getpid()}", "biz_type": "SHIP_GOODS", "biz_id": n, "order_no": n,
                      "payload": {"sku": "card-100", "count": 1}}
    run = str(os.getpid() % 10000).zfill(4)
    a, b, c, d, e, f, g, h, i = (f"A{run}{n}" for n in range(1, 10))
    for n in (a, b, c):
        shop.order(n, "go_on")
    shop.behave(a, "fail", "ok")                      # the order row was locked for a moment
    shop.behave(b, "lost")                            # applied, but the answer was lost: the look-up proves it
    shop.behave(c, "status:503", "status:503", "ok")  # the shop was being deployed
    shop.order(d, "finished", status="PAID", channel_trade_no=f"42000{d[1:]}")  # another flow was faster
    shop.order(e, "go_on", amount="6400", currency="CNY")                       # amounts differ: never guessed
    shop.behave(f, "fail")                            # fails until the tries are spent
    shop.behave(g, "odd", "ok")                       # a login page instead of an answer
    shop.behave(h, "status:422")                      # the shop refuses the content
    return [(0.0, pay(a)), (0.6, pay(b)), (0.6, pay(c)), (0.6, pay(d)), (0.6, pay(e)), (0.6, ship(f)), (0.6, ship(g)),
            (0.6, ship(h)), (0.6, pay(i))], i         # i: the callback came before the shop's own row


class Api:
    def __init__(self, url, token):
        self.url, self.token = url, token

    def __call__(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as reply:
            return json.load(reply)


class Screen:
    """Prints every transition once, oldest first."""

    def __init__(self, api, words):
        self.api, self.words, self.seen, self.colour = api, words, {}, sys.stdout.isatty()

    def paint(self, text, state):
        return f"\x1b[{COLOURS[state]}m{text}\x1b[0m" if self.colour and state in COLOURS else text

    def turn(self):
        lines = []
        for task in self.api("/v1/tasks?limit=200")["items"]:
            if self.seen.get(task["task_no"], (None, 0))[0] == task["version"]:
                continue
            items = self.api(f"/v1/tasks/{task['task_no']}/log?limit=200")["items"]
            lines += [(item["at"], task, item) for item in items[self.seen.get(task["task_no"], (None, 0))[1]:]]
            self.seen[task["task_no"]] = (task["version"], len(items))
        for at, task, item in sorted(lines, key=lambda line: line[0]):
            what = self.words.get(item["event"], item["event"]).format(attempt=item.get("attempt_no"))
            state = f"{item.get('from') or '–'} → {item['to']}"
            detail = " ".join(str(item[k]) for k in ("code", "effect", "message") if item.get(k))
            print(f"{at[11:19]} {task['order_no']:<13} {what:<21} {self.paint(f'{state:<23}', item['to'])} {detail[:90]}", flush=True)
        return bool(lines)


def start_server(build, config, log_path, port_file):
    log = open(log_path, "ab")
    server = subprocess.Popen([os.path.join(ROOT, build, "backstop"), "serve", "-c", config, "--port-file", port_file],
                              stdout=log, stderr=log, start_new_session=True)
    end = time.monotonic() + 15
    while time.monotonic() < end and server.poll() is None:
        if os.path.exists(port_file) and open(port_file, encoding="utf-8").read().strip():
            return server
        time.sleep(0.05)
    sys.exit(open(log_path, encoding="utf-8", errors="replace").read() or "the server did not start")


def show(api, shop, words, server, log_path, seconds):
    screen, (todo, early), began = Screen(api, words), cases(shop), time.monotonic()
    due, quiet, told = began + 0.5, time.monotonic(), False
    print(words["head"])
    while seconds == 0 or time.monotonic() - began < seconds:
        if server.poll() is not None:
            sys.exit(words["lost"] + "\n" + open(log_path, encoding="utf-8").read()[-3000:])
        if todo and time.monotonic() >= due:
            _, submission = todo.pop(0)
            api("/v1/tasks", submission)
            due = time.monotonic() + (todo[0][0] if todo else 0)
        if time.monotonic() - began > 12:
            shop.order(early, "go_on") if early not in shop.orders else None
        if screen.turn():
            quiet, told = time.monotonic(), False
        elif time.monotonic() - quiet > 8 and not told:
            told = True
            counts = {}
            for task in api("/v1/tasks?limit=200")["items"]:
                counts[task["task_status"]] = counts.get(task["task_status"], 0) + 1
            print(words["sum"] + ", ".join(f"{n} {state}" for state, n in sorted(counts.items())), flush=True)
        time.sleep(0.3)


def demonstrate(args, words):
    data = os.path.join(ROOT, "data", "demo")
    os.makedirs(data, exist_ok=True)
    secret = "demo-secret-" + os.urandom(12).hex()
    with Shop(secret=secret) as shop, tempfile.TemporaryDirectory() as private:
        config, log_path, port_file = (os.path.join(p, n) for p, n in
                                       ((data, "backstop.yaml"), (data, "server.log"), (private, "port")))
        for name in os.listdir(data):
            os.unlink(os.path.join(data, name))
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(port=args.port, data=data, shop=shop.url, secret=secret))
        binary = os.path.join(ROOT, args.build, "backstop")
        token = subprocess.check_output([binary, "token", "add", "demo", "--role", "admin", "-c", config], text=True).strip()
        server = start_server(args.build, config, log_path, port_file)
        url = f"http://127.0.0.1:{open(port_file, encoding='utf-8').read().strip()}"
        short = os.path.relpath(config)
        print(words["where"].format(url=url, token=token), words["log"].format(log=os.path.relpath(log_path)), words["try"],
              f"  build/backstop task list -c {short}", f"  build/backstop task list --status MANUAL -c {short}",
              f"  build/backstop queue list -c {short}",
              f"  curl -H 'Authorization: Bearer {token}' {url}/v1/stats", words["stop"], "", sep="\n", flush=True)
        try:
            show(Api(url, token), shop, words, server, log_path, args.seconds)
        except KeyboardInterrupt:
            pass
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)


def serve_only(args):
    """Without a configuration of the user's own: the defaults."""
    os.chdir(ROOT)
    binary = os.path.join(args.build, "backstop")
    os.execv(binary, [binary, "serve"] + (["-c", args.config] if args.config else []))


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--build", default="build")
    args.add_argument("--no-demo", action="store_true", help="only serve, with ./backstop.yaml or the defaults")
    args.add_argument("--config", "-c", help="with --no-demo: the configuration to serve")
    args.add_argument("--port", type=int, default=8787, help="of the demonstration server; 0 takes a free one")
    args.add_argument("--seconds", type=float, default=0, help="end by itself after so many seconds")
    args.add_argument("--lang", choices=("en", "zh"))
    args = args.parse_args()
    if args.no_demo:
        serve_only(args)
    language = args.lang or ("zh" if (os.environ.get("LC_ALL") or os.environ.get("LANG") or locale.getlocale()[0] or "")
                             .startswith("zh") else "en")
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    demonstrate(args, WORDS[language])


if __name__ == "__main__":
    main()
