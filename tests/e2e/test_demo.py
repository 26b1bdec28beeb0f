"""The demonstration: what it shows is in columns, in both languages, and a second one leaves the first alone."""
import os
import re
import subprocess
import sys
import tempfile
import time
import unicodedata

from harness import BACKSTOP, equal, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def demo(folder, *args):
    return subprocess.Popen([sys.executable, os.path.join(ROOT, "demo", "run.py"), "--build", os.path.dirname(BACKSTOP), "--data", folder,
                             "--port", "0", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def both_languages_are_in_columns():
    for language, repaired, reason in (("en", "repaired", "DB_LOCKED the order row is locked"), ("zh", "补单成功", "DB_LOCKED 订单行被锁")):
        with tempfile.TemporaryDirectory() as folder:
            shown, wrong = demo(folder, "--seconds", "6", "--lang", language).communicate(timeout=120)
            equal(wrong, "")
            lines = [line for line in shown.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
            starts = {columns(line[:re.search("[A-Z]+ → |– → ", line).start()]) for line in lines}
            equal((len(starts), len(lines) > 15), (1, True), shown)
            assert any(repaired in line for line in lines) and any(line.endswith(reason) for line in lines), shown


def a_second_one_is_refused_and_the_first_keeps_its_store():
    with tempfile.TemporaryDirectory() as folder:
        first = demo(folder, "--seconds", "4")
        store = os.path.join(folder, "backstop.db")
        end = time.monotonic() + 30
        while not os.path.exists(store) and time.monotonic() < end:
            time.sleep(0.05)
        before = os.stat(store).st_ino
        second = demo(folder)
        _, words = second.communicate(timeout=30)
        equal((second.returncode, "already" in words, "Traceback" in words), (1, True, False), words)
        equal(os.stat(store).st_ino, before)
        first.communicate(timeout=60)
        equal(first.returncode, 0)


if __name__ == "__main__":
    main(globals())
