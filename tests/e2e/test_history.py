"""Backups while the server works, history, what a stop of the process leaves behind."""
import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import threading
import time

from harness import BACKSTOP, FULL, Client, Server, Shop, accepted, equal, eventually, main, queue, submission, subset, task


def rows(path, sql, *args, mode="mode=ro"):
    with contextlib.closing(sqlite3.connect(f"file:{path}?{mode}", uri=True)) as db:
        return db.execute(sql, args).fetchall()


class Submitters:
    """Threads that submit until told to stop; `acknowledged` grows with each 201."""

    def __init__(self, server, n=4):
        self.acknowledged, self.ended, token = [], threading.Event(), server.token("service")
        self.threads = [threading.Thread(target=self.work, args=(Client(server.port, token), i)) for i in range(n)]
        for t in self.threads:
            t.start()

    def work(self, client, who):
        n = 0
        while not self.ended.is_set():
            n += 1
            body = submission(f"{who}-{n}")
            if client.post("/v1/tasks", body).status == 201:
                self.acknowledged.append(body["request_id"])
        client.close()

    def stop(self):
        self.ended.set()
        for t in self.threads:
            t.join()


@subset
def a_backup_while_submissions_run_holds_every_task_acknowledged_before_it_and_can_be_served():
    with Shop() as shop, Server(queue(shop, retry="{ delays: [1h], jitter: 0% }")) as server:
        submitters = Submitters(server)
        try:
            eventually(lambda: len(submitters.acknowledged) > 300, 30, "300 tasks")
            for n in range(5 if FULL else 2):
                copy, before = os.path.join(server.folder, f"copy-{n}.db"), list(submitters.acknowledged)
                said = server.cli("backup", copy, "--json")[1]
                kept = {r[0] for r in rows(copy, "SELECT request_id FROM request_key", mode="immutable=1")}
                equal(set(before) - kept, set(), "acknowledged before the backup and not in it")
                equal(str(rows(copy, "SELECT count(*) FROM task", mode="immutable=1")[0][0]) in said, True, said)
                equal(oct(os.stat(copy).st_mode & 0o777), "0o600", "nobody else reads it")
        finally:
            submitters.stop()
        equal([f for f in os.listdir(server.folder) if ".tmp-" in f], [], "left behind")
        equal(sorted(f for f in os.listdir(server.folder) if f.startswith("copy-0")), ["copy-0.db"])
        _the_copy_serves(shop, server, "copy-0.db", submitters.acknowledged[0])


def _the_copy_serves(shop, server, copy, known):
    folder = os.path.join(server.folder, "restored")
    os.mkdir(folder)
    os.rename(os.path.join(server.folder, copy), os.path.join(folder, "backstop.db"))
    with Server(queue(shop), folder=folder) as second:
        client = second.client()
        equal([t["request_id"] for t in client.get(f"/v1/tasks?request_id={known}").json["items"]], [known])
        accepted(client, submission("after-the-restore"))
        equal(second.stop(), 0)
        equal(second.cli("check-store")[1].strip(), "the store is sound")


def a_backup_is_made_of_a_store_that_nobody_serves():
    with Shop() as shop, Server(queue(shop)) as server:
        accepted(server.client(), submission())
        equal(server.stop(), 0)
        code, out, _ = server.cli("backup", os.path.join(server.folder, "copy.db"))
        equal(code, 0)
        equal(" 1 tasks, " in out, True, out)


def a_backup_refuses_what_is_there_and_says_so():
    with Shop() as shop, Server(queue(shop)) as server:
        taken = os.path.join(server.folder, "taken")
        open(taken, "w", encoding="utf-8").close()
        for file in (taken, server.store):
            code, _, said = server.cli("backup", file, check=False)
            equal((code, "is there already" in said), (1, True), said)
        equal(os.path.getsize(taken), 0)
        code, _, said = server.cli("backup", os.path.join(server.folder, "no", "folder"), check=False)
        equal((code, "cannot make" in said), (1, True), said)
        equal(server.cli("backup", check=False)[0], 2)
        equal(accepted(server.client(), submission()) != "", True)


def a_full_disk_ends_a_backup_with_a_clear_word_and_nothing_left():
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        for n in range(50):
            accepted(client, submission(n, payload={"text": "x" * 4000}))
        copy = os.path.join(server.folder, "copy.db")
        run = subprocess.run([BACKSTOP, "backup", copy, "-c", server.config], capture_output=True, text=True, preexec_fn=small,
                             restore_signals=False)
        equal(run.returncode, 1, run.stderr)
        equal("copying to" in run.stderr, True, run.stderr)
        equal([f for f in os.listdir(server.folder) if f.startswith("copy")], [])
        accepted(client, submission("still-alive"))


@subset
def a_finished_task_moves_to_history_and_is_read_purged_and_remembered():
    with Shop() as shop, Server(queue(shop)) as server:
        client = server.client()
        old = accepted(client, submission("old", effect_key="e-old"))
        eventually(lambda: task(client, old)["task_status"] == "SUCCESS", what="success")
        log = client.get(f"/v1/tasks/{old}/log").json
        _archive(shop, server, old)
        equal(task(client, old)["task_status"], "SUCCESS")
        equal(client.get(f"/v1/tasks/{old}/log").json, log)
        equal([t["task_no"] for t in client.get("/v1/tasks?order_no=order-old").json["items"]], [old])
        again = client.post("/v1/tasks", submission("old", effect_key="e-old"))
        equal((again.status, again.json["duplicate"], again.json["task_no"]), (200, "request", old))
        equal(client.post(f"/v1/tasks/{old}/retry", {"reason": "again"}).status, 409)
        equal("backstop_archived_total 1" in client.get("/metrics").raw.decode(), True)
        equal(server.stop(), 0)
        client.close()

        old = _as_if_so_many_days_ago(server, old, 61)
        server.write_config(queue(shop), "history: { archive_after: 30d, purge_after: 60d }\n")
        server.start()
        client = server.client()
        gone = eventually(lambda: (r := client.get(f"/v1/tasks/{old}")).status == 404 and r, 30, "the purge")
        equal("purged" in gone.json["detail"], True, gone.raw)
        again = client.post("/v1/tasks", submission("old", effect_key="e-old"))
        equal((again.status, again.json), (200, {"task_no": old, "duplicate": "request", "purged": True}))
        other = client.post("/v1/tasks", submission("another", biz_id="biz-old", order_no="order-old", effect_key="e-old"))
        equal((other.status, other.json["duplicate"], other.json.get("purged")), (200, "effect", True))
        equal(client.post("/v1/tasks", submission("old", payload={"n": "other"}, effect_key="e-old")).status, 409)
        equal("backstop_purged_total 1" in client.get("/metrics").raw.decode(), True)
        equal(server.stop(), 0)
        equal(server.cli("check-store")[1].strip(), "the store is sound")


def _archive(shop, server, task_no):
    """A pass comes with every change of the configuration."""
    for n in range(40):
        server.write_config(queue(shop), f"history: {{ archive_after: {1000 + n}ms }}\n")
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        if rows(server.store, "SELECT 1 FROM task_history WHERE id = ?", int(task_no)):
            return
    raise AssertionError("it never came into history")


def _as_if_so_many_days_ago(server, task_no, days):
    """Numbers carry their time, so both are moved back; gives the new number."""
    back_us, back_no = days * 86400 * 1000000, days * 86400 * 1000 << 22
    with contextlib.closing(sqlite3.connect(server.store)) as db, db:
        db.execute("UPDATE task_history SET id = id - ?, created_at = created_at - ?, updated_at = updated_at - ?", (back_no, back_us, back_us))
        db.execute("UPDATE request_key SET task_id = task_id - ?, submit_id = submit_id - ?", (back_no, back_no))
        for table in ("task_payload", "task_log", "effect_key"):
            db.execute(f"UPDATE {table} SET task_id = task_id - ?", (back_no,))
    return str(int(task_no) - back_no)


def the_time_in_which_the_process_was_down_is_written_down():
    with Shop() as shop, Server(queue(shop)) as server:
        eventually(lambda: rows(server.store, "SELECT value FROM meta WHERE name = 'time_high'"), 10, "the store's time")
        high = rows(server.store, "SELECT value FROM meta WHERE name = 'time_high'")[0][0]
        server.kill()
        server.start()
        stops = rows(server.store, "SELECT biz_type, from_at, to_at FROM queue_stop")
        equal([(s[0], s[1] >= high, s[2] > s[1]) for s in stops], [("", True, True)])


if __name__ == "__main__":
    main(globals())
