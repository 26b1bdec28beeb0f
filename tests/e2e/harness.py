"""What every end-to-end test stands on: a private folder, a real server on a free port, a shop, a small client, TAP.

A test is a function whose name is a sentence. `main(globals())` runs the functions named in the command line, or all, and prints one
TAP line each. Environment: BACKSTOP (the program), BACKSTOP_SUBSET=1 runs only those marked @subset, BACKSTOP_FULL=1 the long forms."""
import contextlib
import datetime
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "demo"))
from shop import Shop  # noqa: E402,F401

BACKSTOP = os.environ.get("BACKSTOP") or os.path.join(ROOT, "build", "backstop")
FULL = os.environ.get("BACKSTOP_FULL") == "1"
SUBSET = os.environ.get("BACKSTOP_SUBSET") == "1"
SLOWER = 4 if SUBSET else 1  # sanitizer builds get more patience, never other expectations
SECRET = "e2e-secret-0123456789"


class Skip(Exception):
    """This machine does not let the test do what it has to do."""


def subset(function):
    """Marks a test that also runs under the sanitizers."""
    function.subset = True
    return function


def eventually(true, limit=15.0, what="the condition"):
    """Polls until true() gives something true and returns it."""
    end, last = time.monotonic() + limit * SLOWER, None
    while time.monotonic() < end:
        last = true()
        if last:
            return last
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come within {limit * SLOWER} s; last seen: {last!r}")


def equal(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what}\n  got      {got!r}\n  expected {expected!r}")


class Reply:
    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, headers, raw

    @property
    def json(self):
        return json.loads(self.raw)


class Client:
    """One keep-alive connection to the API; `raw` bodies go out as they are."""

    def __init__(self, port, token=None, host="127.0.0.1", timeout=30):
        self.port, self.token, self.host, self.timeout = port, token, host, timeout
        self.connection = None

    def call(self, method, path, body=None, raw=None, headers=None, content_type="application/json"):
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None:
            sent["Content-Type"] = content_type
        sent.update(headers or {})
        for attempt in (0, 1):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
            try:
                self.connection.request(method, path, body=raw, headers=sent)
                reply = self.connection.getresponse()
                return Reply(reply.status, reply.headers, reply.read())
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.close()
                if attempt or method != "GET":
                    raise

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, body=body, **more)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Server:
    """The real program in a private folder. `queues` is the YAML under `queues:`, indented by two; `under` is a command that runs it."""

    def __init__(self, queues="", extra="", folder=None, env=None, under=()):
        self.folder = folder or tempfile.mkdtemp(prefix="backstop-e2e-")
        self.own_folder = folder is None
        self.config, self.port_file = os.path.join(self.folder, "backstop.yaml"), os.path.join(self.folder, "port")
        self.store, self.log_path = os.path.join(self.folder, "backstop.db"), os.path.join(self.folder, "server.log")
        self.env, self.process, self.port, self.tokens, self.under = env or {}, None, 0, {}, under
        self.write_config(queues, extra)

    def write_config(self, queues, extra=""):
        text = f"listen: 127.0.0.1:0\nstore: sqlite:{self.store}\n{extra}" if "listen:" not in extra else f"store: sqlite:{self.store}\n{extra}"
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(text + ("\n" if not text.endswith("\n") else "") + (f"queues:\n{queues}\n" if queues else ""))

    def cli(self, *args, stdin=None, check=True):
        """Runs a subcommand with -c of this server; gives (exit code, stdout, stderr)."""
        run = subprocess.run([BACKSTOP, *args, "-c", self.config], input=stdin, capture_output=True, text=True, timeout=60 * SLOWER,
                             env={**os.environ, **self.env})
        if check and run.returncode != 0:
            raise AssertionError(f"{args}: exit {run.returncode}\n{run.stdout}{run.stderr}")
        return run.returncode, run.stdout, run.stderr

    def token(self, role="admin", queues=None):
        name = f"{role}-{len(self.tokens)}"
        args = ["token", "add", name, "--role", role] + (["--queues", queues] if queues else [])
        self.tokens[name] = self.cli(*args)[1].strip()
        return self.tokens[name]

    def start(self, wait=True):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.port_file)
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen([*self.under, BACKSTOP, "serve", "-c", self.config, "--port-file", self.port_file], stdout=log,
                                        stderr=log, env={**os.environ, **self.env})
        log.close()
        if wait:
            eventually(self.is_up, 20, "the server's start")
        return self

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log()[-3000:]}")
        with contextlib.suppress(FileNotFoundError, ValueError, OSError):
            self.port = int(open(self.port_file, encoding="utf-8").read())
            return Client(self.port, timeout=5).get("/healthz").status == 200
        return False

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def events(self, name):
        """The log lines of one event, parsed."""
        found = []
        for line in self.log().splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if entry.get("event") == name:
                    found.append(entry)
        return found

    def client(self, role="admin", queues=None):
        return Client(self.port, self.token(role, queues))

    def stop(self, how=signal.SIGTERM, limit=40):
        """Sends the signal, waits, gives the exit code."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(limit * SLOWER) if self.process else None
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end within {limit * SLOWER} s:\n{self.log()[-3000:]}")

    def kill(self):
        self.stop(signal.SIGKILL)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:  # nobody else would end it
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind, *_):
        if self.process and self.process.poll() is None:
            code = self.stop(signal.SIGTERM if kind is None else signal.SIGKILL)
            if kind is None and code != 0:
                raise AssertionError(f"the server ended with {code}:\n{self.log()[-3000:]}")
        if kind is None and "Sanitizer" in self.log():
            raise AssertionError(self.log()[-6000:])
        if kind is not None:
            print("# server log, last lines:\n#   " + "\n#   ".join(self.log()[-4000:].splitlines()), flush=True)
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def queue(shop, name="PAY_CALLBACK", path="/pay/process", **keys):
    """One queue's YAML; keys override: queue(shop, order_check='none', retry='{ delays: [200ms] }')."""
    settings = {"handler": f"{shop.url}{path}", "secret": SECRET, "order_check": "none", "call_timeout": "5s", "lease": "20s",
                "retry": "{ delays: [200ms], jitter: 0% }", **keys}
    return f"  {name}:\n" + "\n".join(f"    {k}: {v}" for k, v in settings.items()) + "\n"


def look_up(shop):
    """An order_check that asks the shop."""
    return f'{{ url: "{shop.url}/orders/{{order_no}}", timeout: 2s }}'


def at(zone=0, **later):
    """A time so far from now, RFC 3339. A test against the real clock has no other: a fixed day becomes the past."""
    t = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=zone))) + datetime.timedelta(**later)
    return t.isoformat(timespec="seconds").replace("+00:00", "Z")


def submission(n="1", **more):
    return {"request_id": f"req-{n}", "biz_type": "PAY_CALLBACK", "biz_id": f"biz-{n}", "order_no": f"order-{n}", "payload": {"n": n}, **more}


def accepted(client, body, status=201):
    reply = client.post("/v1/tasks", body)
    equal(reply.status, status, reply.raw[:500])
    return reply.json["task_no"]


def task(client, task_no):
    reply = client.get(f"/v1/tasks/{task_no}")
    equal(reply.status, 200, reply.raw[:500])
    return reply.json


def until(client, task_no, *states, limit=20):
    """Waits for a task to stand in one of the states and gives it."""
    return eventually(lambda: (t := task(client, task_no))["task_status"] in states and t, limit, f"{task_no} in {states}")


def log_of(client, task_no):
    reply = client.get(f"/v1/tasks/{task_no}/log?limit=200")
    equal(reply.status, 200, reply.raw[:500])
    return reply.json["items"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main(names):
    tests = [(n, f) for n, f in names.items() if callable(f) and getattr(f, "__module__", "") == "__main__" and not n.startswith("_")
             and n.count("_") >= 2 and (not sys.argv[1:] or n in sys.argv[1:]) and (not SUBSET or getattr(f, "subset", False))]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, function) in enumerate(tests, 1):
        began = time.monotonic()
        try:
            function()
            print(f"ok {number} - {name} # {time.monotonic() - began:.1f} s", flush=True)
        except Skip as e:
            print(f"ok {number} - {name} # SKIP {e}", flush=True)
        except Exception:  # a test's failure is its report
            failed += 1
            print("#   " + "\n#   ".join(traceback.format_exc().splitlines()))
            print(f"not ok {number} - {name}", flush=True)
    sys.exit(1 if failed else 0)
