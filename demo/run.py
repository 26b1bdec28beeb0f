"""Starts Backstop and, unless --no-demo, the demonstration shop, submits failed payment callbacks as they happen in real
life, and shows live how they are retried, repaired, or handed to a person. Ends with Ctrl-C."""
import argparse
import fcntl
import json
import locale
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unicodedata
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

WIDTHS = (8, 13, 21, 23)  # columns of a terminal; the details follow

WORDS = {
    "en": {
        "where": "Backstop answers at {url}   (token: {token})", "log": "its log: {log}",
        "try": "look closer in another terminal:", "stop": "Ctrl-C ends it.",
        "head": ("time", "order", "what happened", "state", "details"),
        "sum": "so far: ", "lost": "the server ended unexpectedly; its log says:",
        "running": "a demonstration runs in {data} already; end that one first (Ctrl-C there)",
        "taken": "port {port} is taken; this demonstration uses a free one",
        "unconfigured": "there is no backstop.yaml: the server knows no queue yet; `Your own` in README.md shows one",
        "submit": "accepted", "claim": "execution {attempt}", "succeeded": "repaired", "already_finished": "was right already",
        "failed": "failed", "failed_last": "failed, tries spent", "escalate": "handed to a person", "unknown": "no clear answer",
        "unknown_last": "unknown, to a person", "needs_person": "needs a person", "not_processed": "not processed",
        "released_unsent": "given back", "released_sent": "given back, unknown", "lease_expired": "worker lost",
        "close": "closed by hand", "resolve": "resolved by hand", "retry_fresh": "retried by hand", "run_now": "run now, by hand",
        "hold": "held", "unhold": "let go on", "ask_close": "asked during the call",
    },
    "zh": {
        "where": "Backstop 已启动：{url}   （令牌：{token}）", "log": "运行日志：{log}",
        "try": "可在另一个终端查看：", "stop": "按 Ctrl-C 结束。",
        "head": ("时间", "订单号", "经过", "状态", "说明"),
        "sum": "目前：", "lost": "服务意外退出，日志如下：",
        "running": "{data} 里已有一个演示在运行，请先结束它（在那个终端按 Ctrl-C）",
        "taken": "端口 {port} 已被占用，本次演示改用空闲端口",
        "unconfigured": "没有 backstop.yaml：服务已启动，但还没有任何队列；写法见 README.zh-CN.md“接入自己的系统”",
        "submit": "已受理", "claim": "第 {attempt} 次执行", "succeeded": "补单成功", "already_finished": "订单已完成，无需补单",
        "failed": "执行失败", "failed_last": "重试次数用尽", "escalate": "转人工处理", "unknown": "结果不明",
        "unknown_last": "结果不明，转人工", "needs_person": "转人工处理", "not_processed": "未处理，不计次数",
        "released_unsent": "退回（未发出）", "released_sent": "退回（结果不明）", "lease_expired": "执行者失联，收回",
        "close": "人工关闭", "resolve": "人工处理完毕", "retry_fresh": "人工重试", "run_now": "人工触发立即执行",
        "hold": "人工挂起", "unhold": "解除挂起", "ask_close": "执行中收到人工指令",
    },
}
# What the details say in Chinese, by code; the server's own words are English.
DETAILS_ZH = {
    "CALLBACK": "来源：支付回调", "API": "来源：接口提交", "RESET": "未收到应答，连接已断",
    "BAD_REPLY": "返回 200，但内容不符合成功约定", "ORDER_NOT_FOUND": "查单：暂无此订单",
    "ORDER_ALREADY_FINISHED": "查单：订单已支付", "HTTP_503": "商城暂不可用", "HTTP_422": "商城认为内容有误，拒绝处理",
}
SHOP_ZH = {"paid": "订单 {} 已置为已支付", "shipped": "订单 {} 已发货", "locked": "订单行被锁"}
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


def fit(text, width):
    """Han letters take two columns of a terminal."""
    return text + " " * (width - sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text))


def details(item, language):
    code, message = item.get("code") or "", item.get("message") or ""
    if language == "zh":
        differs = re.match(r"\w+ of (\S+ \w+): the task's amount is (\S+) \w+, the look-up's is (\S+)", message)
        message = DETAILS_ZH.get(code or message, message)
        if differs:
            message = "金额差异 {}：任务 {}，查单 {}".format(*differs.groups())
        if not code:
            return item.get("effect") or message
    elif message == code.replace("_", " "):
        message = ""
    text = " ".join(part for part in (code, item.get("effect"), message) if part)
    return text if len(text) <= 120 else text[:119] + "…"


class Screen:
    """Prints every transition once, oldest first."""

    def __init__(self, api, language):
        self.api, self.words, self.language = api, WORDS[language], language
        self.seen, self.colour = {}, sys.stdout.isatty()

    def paint(self, text, state):
        return f"\x1b[{COLOURS[state]}m{text}\x1b[0m" if self.colour and state in COLOURS else text

    def line(self, cells, state=None):
        parts = [fit(text, width) for text, width in zip(cells, WIDTHS)]
        parts[3] = self.paint(parts[3], state)
        print(" ".join(parts + [cells[4]]).rstrip(), flush=True)

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
            state = f"{item.get('from') or '–'} → {item['to']}" if item["to"] else ""
            self.line((at[11:19], task["order_no"] or "", what, state, details(item, self.language)), item["to"])
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
    sys.exit(reason(open(log_path, encoding="utf-8", errors="replace").read()) or "the server did not start")


def reason(log):
    """The last message of a log of JSON lines, or the log as it is."""
    try:
        return json.loads(log.strip().splitlines()[-1])["message"]
    except (IndexError, KeyError, ValueError):
        return log


def show(api, shop, language, server, log_path, seconds):
    words, screen, (todo, early), began = WORDS[language], Screen(api, language), cases(shop), time.monotonic()
    due, quiet, told = began + 0.5, time.monotonic(), False
    screen.line(words["head"])
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


def alone_in(data, words):
    """The folder is emptied at the start, so it must not be another demonstration's. Locked until the process ends."""
    os.makedirs(data, exist_ok=True)
    lock = open(os.path.join(data, "demo.lock"), "a", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(words["running"].format(data=os.path.relpath(data)))
    for name in os.listdir(data):
        if name != "demo.lock":
            os.unlink(os.path.join(data, name))
    return lock


def port_for(asked, words):
    if asked is not None:
        return asked
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 8787))
            return 8787
        except OSError:
            print(words["taken"].format(port=8787), flush=True)
            return 0


def demonstrate(args, language):
    words, data = WORDS[language], os.path.abspath(args.data)
    lock = alone_in(data, words)
    secret = "demo-secret-" + os.urandom(12).hex()
    with lock, Shop(secret=secret, words=SHOP_ZH if language == "zh" else None) as shop, tempfile.TemporaryDirectory() as private:
        config, log_path, port_file = (os.path.join(p, n) for p, n in
                                       ((data, "backstop.yaml"), (data, "server.log"), (private, "port")))
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(port=port_for(args.port, words), data=data, shop=shop.url, secret=secret))
        binary = os.path.join(ROOT, args.build, "backstop")
        added = subprocess.run([binary, "token", "add", "demo", "--role", "admin", "-c", config], stdout=subprocess.PIPE, text=True)
        if added.returncode:
            sys.exit(added.returncode)  # it has said why
        token = added.stdout.strip()
        server = start_server(args.build, config, log_path, port_file)
        url = f"http://127.0.0.1:{open(port_file, encoding='utf-8').read().strip()}"
        short = os.path.relpath(config)
        print(words["where"].format(url=url, token=token), words["log"].format(log=os.path.relpath(log_path)), words["try"],
              f"  build/backstop task list -c {short}", f"  build/backstop task list --status MANUAL -c {short}",
              f"  build/backstop queue list -c {short}",
              f"  curl -H 'Authorization: Bearer {token}' {url}/v1/stats", words["stop"], "", sep="\n", flush=True)
        try:
            show(Api(url, token), shop, language, server, log_path, args.seconds)
        except KeyboardInterrupt:
            pass
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)


def serve_only(args, words):
    """Without a configuration of the user's own: the defaults."""
    os.chdir(ROOT)
    binary = os.path.join(args.build, "backstop")
    if not args.config and not any(os.path.exists(p) for p in ("backstop.yaml", "/etc/backstop/backstop.yaml")):
        print(words["unconfigured"], file=sys.stderr)
    os.execv(binary, [binary, "serve"] + (["-c", args.config] if args.config else []))


def main():
    args = argparse.ArgumentParser(prog="./dev run", description=__doc__)
    args.add_argument("--build", default="build", help=argparse.SUPPRESS)
    args.add_argument("--data", default=os.path.join(ROOT, "data", "demo"), help=argparse.SUPPRESS)
    args.add_argument("--no-demo", action="store_true", help="only serve, with ./backstop.yaml or the defaults")
    args.add_argument("--config", "-c", help="with --no-demo: the configuration to serve")
    args.add_argument("--port", type=int, help="of the demonstration server; 8787, or a free one where that is taken")
    args.add_argument("--seconds", type=float, default=0, help="end by itself after so many seconds")
    args.add_argument("--lang", choices=("en", "zh"), help="of what is shown; else the terminal's language")
    args = args.parse_args()
    language = args.lang or ("zh" if (os.environ.get("LC_ALL") or os.environ.get("LANG") or locale.getlocale()[0] or "")
                             .startswith("zh") else "en")
    if args.no_demo:
        serve_only(args, WORDS[language])
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    demonstrate(args, language)


if __name__ == "__main__":
    main()
