"""Figures: what /v1/stats, /v1/queues, /metrics and the command line say is what the tasks are."""
import collections
import json
import re
import signal

from harness import (Client, Server, Shop, accepted, equal, eventually, main, queue, submission, subset, until)

OPEN = ("WAITING", "PROCESSING", "RETRY", "MANUAL", "FAILED")
STATES = OPEN[:3] + ("SUCCESS", "FAILED", "MANUAL", "CLOSED")

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+|\+Inf|NaN)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')


def all_tasks(client):
    """Every task there is, page by page."""
    items, cursor = [], None
    while True:
        page = client.get("/v1/tasks?limit=50" + (f"&cursor={cursor}" if cursor else "")).json
        items, cursor = items + page["items"], page["next_cursor"]
        if cursor is None:
            return items


def family_of(name, types):
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and types.get(name[:-len(suffix)]) == "histogram":
            return name[:-len(suffix)]
    return name


def parsed(text):
    """{name: {labels: value}} of Prometheus' text format; whatever is not in its rules fails."""
    types, helps, samples = {}, set(), collections.defaultdict(dict)
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in helps, f"two HELP of {name}"
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram"), line
            assert not any(family_of(n, {name: kind}) == name for n in samples), f"samples of {name} before its type"
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"not a sample: {line}"
            name, labels = match[1], tuple(sorted(LABEL.findall(match[2] or "")))
            assert family_of(name, types) in types, f"no type: {line}"
            assert labels not in samples[name], f"twice: {line}"
            samples[name][labels] = float(match[3])
            assert types[family_of(name, types)] != "counter" or name.endswith("_total"), f"a counter ends in _total: {name}"
    equal(helps, set(types), "what has a type has a help")
    for name, kind in types.items():
        if kind == "histogram":
            check_histogram(name, samples)
    return samples


def check_histogram(name, samples):
    series = collections.defaultdict(list)
    for labels, value in samples[name + "_bucket"].items():
        bound = dict(labels)["le"]
        series[tuple(l for l in labels if l[0] != "le")].append((float(bound), value))
    equal(set(series), set(samples[name + "_count"]), name)
    equal(set(series), set(samples[name + "_sum"]), name)
    for labels, buckets in series.items():
        buckets.sort()
        equal(buckets[-1][0], float("inf"), name)
        assert all(a[1] <= b[1] for a, b in zip(buckets, buckets[1:])), f"{name}{labels} falls"
        equal(buckets[-1][1], samples[name + "_count"][labels], name)


def metrics(server):
    reply = Client(server.port).get("/metrics")
    equal((reply.status, reply.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
    return parsed(reply.raw.decode())


def labelled(**labels):
    return tuple(sorted(labels.items()))


def mixed_run(shop, client):
    """Two queues, three currencies and none; every state at rest, unknown ones too."""
    ways = {0: ("ok",), 1: ("status:500",), 2: ("person",), 3: ("fail",), 4: ("status:500", "ok")}
    for n in range(60):
        shop.behave(f"order-{n}", *ways[n % 5])
        body = submission(n, biz_type="PAY_CALLBACK" if n % 3 else "SHIP")
        if n % 4:
            body.update(amount=100 + n, currency=("CNY", "JPY", "KWD")[n % 3])
        if n % 10 == 9:
            body["delay"] = "1h"
        accepted(client, body)
    accepted(client, submission("parked", biz_type="NO_SUCH", park=True, amount=7, currency="CNY"))
    eventually(lambda: not any(t["task_status"] == "PROCESSING" or t["task_status"] in ("WAITING", "RETRY") and not soon(t)
                               for t in all_tasks(client)), 40, "the end of the run")
    held = next(t for t in all_tasks(client) if t["task_status"] == "WAITING")
    for action, more in (("hold", {}), ("resolve", {"conclusion": "not_done"})):
        equal(client.post(f"/v1/tasks/{held['task_no']}/{action}", {"reason": "mixed", **more}).status, 200)


def soon(task):
    """Whether it waits for a later hour, which this test does not."""
    return task["source"] == "API" and int(task["request_id"].split("-")[1]) % 10 == 9


@subset
def figures_equal_what_the_lists_show_after_a_mixed_run():
    retry = {"retry": "{ delays: [50ms], jitter: 0% }", "max_retry_count": 2}
    with Shop() as shop, Server(queue(shop, **retry) + queue(shop, "SHIP", **retry)
                                + queue(shop, "IDLE")) as server:
        client = server.client()
        mixed_run(shop, client)
        tasks = all_tasks(client)
        equal(len(tasks), 61)
        assert {t["task_status"] for t in tasks} >= {"WAITING", "SUCCESS", "MANUAL", "CLOSED"}, tasks
        counts, sums, unknown = collections.Counter(), collections.Counter(), collections.Counter()
        exposed, oldest = collections.Counter(), {}
        for t in tasks:
            counts[t["biz_type"], t["task_status"]] += 1
            unknown[t["biz_type"]] += t["outcome_unknown"]
            if t["amount"] is not None:
                sums[t["biz_type"], t["task_status"], t["currency"]] += int(t["amount"])
                exposed[t["biz_type"], t["currency"]] += int(t["amount"]) if t["task_status"] in OPEN else 0
            if t["task_status"] == "MANUAL":
                oldest[t["biz_type"]] = min(oldest.get(t["biz_type"], "9"), t["updated_at"])
        assert sum(unknown.values()) > 0 and len(sums) > 5, "the run was not mixed"
        stats = {i["biz_type"]: i for i in client.get("/v1/stats").json["items"]}
        equal(set(stats), {"PAY_CALLBACK", "SHIP", "IDLE", "NO_SUCH"})
        queues = {i["biz_type"]: i for i in client.get("/v1/queues").json["items"]}
        text = metrics(server)
        for name, item in stats.items():
            equal(item["counts"], {s: counts[name, s] for s in STATES}, name)
            equal(item["unknown"], unknown[name], name)
            equal({(a["task_status"], a["currency"]): int(a["amount"]) for a in item["amounts"]},
                  {k[1:]: v for k, v in sums.items() if k[0] == name}, name)
            equal({e["currency"]: int(e["amount"]) for e in item["exposure"]}, {k[1]: v for k, v in exposed.items() if k[0] == name and v}, name)
            equal(item["oldest_manual"], oldest.get(name), name)
            for member in ("counts", "unknown", "exposure", "oldest_due", "oldest_manual"):
                equal(queues[name][member], item[member], f"{name}.{member}")
            whole = client.get(f"/v1/queues/{name}").json
            equal((whole["counts"], whole["amounts"]), (item["counts"], item["amounts"]), name)
            for state in STATES:
                equal(text["backstop_tasks"][labelled(biz_type=name, status=state)], counts[name, state], f"{name} {state}")
            equal(text["backstop_tasks_unknown"][labelled(biz_type=name)], unknown[name], name)
        for (name, state, currency), amount in sums.items():
            equal(text["backstop_tasks_amount"][labelled(biz_type=name, status=state, currency=currency)], amount)
        for (name, currency), amount in exposed.items():
            equal(text["backstop_exposure_amount"][labelled(biz_type=name, currency=currency)], amount)
        equal(server.stop(), 0)
        equal(server.cli("check-store")[0], 0)


@subset
def latencies_and_the_breaker_are_shown():
    with Shop() as shop, Server(queue(shop, rate="500/s", max_age="2d") + queue(shop, "SLOW", path="/slow")
                                + queue(shop, "GONE", path="/gone", retry="{ delays: [1h] }")) as server:
        client = server.client()
        shop.behave("/slow", "slow:0.3")
        shop.behave("/gone", "status:404")
        fast = [accepted(client, submission(n)) for n in range(20)]
        slow = accepted(client, submission("slow", biz_type="SLOW"))
        for n in range(4):
            accepted(client, submission(f"gone-{n}", biz_type="GONE"))
        for no in fast + [slow]:
            until(client, no, "SUCCESS")
        gone = eventually(lambda: (q := client.get("/v1/queues/GONE").json)["breaker"]["state"] != "closed" and q, 20, "the breaker")
        assert gone["breaker"]["since"] and "404" in gone["breaker"]["why"] and gone["breaker"]["openings"] >= 1, gone
        pay, slow = client.get("/v1/queues/PAY_CALLBACK").json, client.get("/v1/queues/SLOW").json
        equal((pay["rate"], pay["max_age_ms"], slow["rate"], slow["max_age_ms"]), ("500/s", 172800000, None, None))
        equal(pay["host"], shop.url.split("//")[1])
        equal(pay["breaker"], {"state": "closed", "since": None, "openings": 0, "why": None})
        equal((pay["calls"]["count"], pay["waits"]["count"], pay["settles"]["count"]), (20, 20, 20))
        equal(slow["calls"]["count"], 1)
        assert 250 <= slow["calls"]["p50_ms"] <= 500 and slow["settles"]["p99_ms"] >= 250, slow
        text = metrics(server)
        equal(text["backstop_call_seconds_count"][labelled(biz_type="PAY_CALLBACK")], 20)
        assert 0.3 <= text["backstop_call_seconds_sum"][labelled(biz_type="SLOW")] < 5
        equal(text["backstop_breaker_open"][labelled(biz_type="GONE")], 1)
        equal(text["backstop_breaker_open"][labelled(biz_type="SLOW")], 0)
        assert text["backstop_breaker_openings_total"][labelled(biz_type="GONE")] >= 1
        shown = server.cli("queue", "show", "GONE")[1]
        assert re.search(r"^breaker\.state +(half_)?open$", shown, re.M) and re.search(r"^counts\.RETRY +[1-9]$", shown, re.M), shown
        equal(json.loads(server.cli("queue", "show", "SLOW", "--json")[1])["rate"], None)
        code, _, err = server.cli("queue", "show", "NO_SUCH", check=False)
        assert code == 1 and "no queue of this name" in err, err
        assert "BREAKER" in server.cli("queue", "list")[1].splitlines()[0]


def the_command_line_shows_money_with_its_point():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        until(client, accepted(client, submission(1, amount=6410, currency="CNY")), "SUCCESS")
        accepted(client, submission(2, amount=500, currency="JPY", delay="1h"))
        accepted(client, submission(3, amount=25000, currency="CNY", delay="1h"))
        stats = server.cli("stats")[1]
        assert re.search(r"^PAY_CALLBACK +2 +0 +0 +0 +1 +0 +0 +250\.00 CNY, 500 JPY +2", stats, re.M), stats
        assert re.search(r"^PAY_CALLBACK +SUCCESS +1 +64\.10 CNY$", stats, re.M), stats
        shown = server.cli("queue", "show", "PAY_CALLBACK")[1]
        assert re.search(r"^exposure +250\.00 CNY\n +500 JPY$", shown, re.M), shown
        assert re.search(r"^amounts +WAITING 250\.00 CNY \(1\)$", shown, re.M), shown


def a_reload_takes_over_rates_ages_and_hosts_or_nothing():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        seen = lambda: (q := client.get("/v1/queues/PAY_CALLBACK").json) and (q["rate"], q["max_age_ms"])
        equal(seen(), (None, None))
        host = shop.url.split("//")[1]
        server.write_config(queue(shop, rate="7/m", max_age="1h"), f"hosts: {{ '{host}': {{ concurrency: 3 }} }}\nhistory: {{ archive_after: 1d }}\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: seen() == ("7/m", 3600000), 10, "the new rate")
        server.write_config(queue(shop, rate="8/m"), "hosts: { '127.0.0.1:1': { concurrency: 3 } }\n")
        server.process.send_signal(signal.SIGHUP)
        fault = eventually(lambda: server.events("config.fault"), 10, "the refusal")[0]["message"]
        assert f"no queue calls `127.0.0.1:1`; did you mean `{host}`?" in fault, fault
        equal(seen(), ("7/m", 3600000))


if __name__ == "__main__":
    main(globals())
