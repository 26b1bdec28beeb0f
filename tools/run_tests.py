"""Runs everything that proves Backstop and counts it: lint, unit, contract, network, simulation, end to end,
crash, the same under sanitizers, fuzz smoke. Each program prints TAP; its last line here is "N passed, N failed"."""
import argparse
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULT = re.compile(r"^(ok|not ok)\b(?:\s+\d+)?(?:\s+-?\s*(.*))?$")


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.failures = 0, 0, 0, []

    def add(self, name, good):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(name)


def say(text):
    print(text, flush=True)


def outcome(tally, title, command, env, limit, cwd=ROOT, whole=False):
    """Runs one program; every TAP line is one result, a program without any is one result by its exit code. whole: all it said is shown."""
    started = time.monotonic()
    try:
        run = subprocess.run(command, env={**os.environ, **env}, cwd=cwd, text=True, errors="replace",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)
        output, code = run.stdout, run.returncode
    except subprocess.TimeoutExpired as e:
        output, code = (e.stdout or b"").decode(errors="replace") + f"\nended after {limit} s", 124
    lines = [m for m in map(RESULT.match, output.splitlines()) if m]
    before = tally.failed
    for m in lines:
        if "# SKIP" in (m.group(2) or ""):
            tally.skipped += 1
        else:
            tally.add(f"{title}: {m.group(2)}", m.group(1) == "ok")
    if not lines or (code != 0 and tally.failed == before):
        tally.add(f"{title}: exit code {code}", code == 0)
    bad = tally.failed - before
    say(f"{'FAIL' if bad else 'ok  '} {title:<34} {max(1, len(lines)):>4} results {time.monotonic() - started:7.1f} s")
    for line in output.splitlines() if not bad else []:
        if whole or line.startswith("## ") or "# SKIP" in line:
            say("     " + line.removeprefix("## "))
    if bad:
        say("\n".join("     | " + line for line in output.splitlines()[-120:]))


def programs(build):
    tests = json.loads(subprocess.check_output(["meson", "introspect", "--tests", build], cwd=ROOT))
    for t in tests:
        t["suite"] = [s.split(":")[-1] for s in t["suite"]]
    return tests


def compile_variant(build, options, env=None):
    if not os.path.exists(os.path.join(ROOT, build, "build.ninja")):
        subprocess.run(["meson", "setup", build, *options], cwd=ROOT, check=True, env={**os.environ, **(env or {})},
                       stdout=subprocess.DEVNULL)
    run = subprocess.run(["ninja", "-C", build], cwd=ROOT, text=True, capture_output=True)
    if run.returncode:
        say(run.stdout[-6000:])
        raise SystemExit(f"the build in {build} failed")


def run_suites(tally, build, suites, env, label="", only=None):
    for suite in suites:
        for t in programs(build):
            if suite not in t["suite"] or (only and not only(t)):
                continue
            outcome(tally, label + suite + " / " + t["name"], t["cmd"], {**t["env"], "CMOCKA_MESSAGE_OUTPUT": "TAP", **env},
                    t["timeout"] or 600, t["workdir"] or ROOT, whole=suite == "sim" and not label)


def threaded(test):
    """What has threads of its own: the rest would only run slower under TSan."""
    return "unit" not in test["suite"] or test["name"].startswith(("sys_", "api_", "engine_threads"))


SANITIZED = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=0",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--full", action="store_true", help="everything at full length (CI)")
    args.add_argument("--since", type=float, default=time.time(), help="when the whole command began")
    args.add_argument("--only", default="", help="comma-separated parts: lint,unit,contract,net,sim,e2e,crash,asan,tsan,fuzz")
    args = args.parse_args()
    tally, full = Tally(), args.full
    want = lambda part: not args.only or part in args.only.split(",")
    length = {"BACKSTOP_FULL": "1" if full else "0", "BACKSTOP_SIM_SEEDS": "2000" if full else "300"}

    if want("lint"):
        outcome(tally, "lint", [sys.executable, "tools/lint.py", "--tap"] + (["--tidy"] if full else []), {}, 900)
    run_suites(tally, "build", [s for s in ("unit", "contract", "net", "sim", "e2e", "crash") if want(s)], length)
    if want("asan"):
        compile_variant("build-asan", ["-Db_sanitize=address,undefined", "-Db_lundef=false"])
        run_suites(tally, "build-asan", ["unit", "contract", "net", "sim", "e2e", "crash"],
                   {**SANITIZED, "BACKSTOP_SIM_SEEDS": "200" if full else "30", "BACKSTOP_SUBSET": "1"}, "asan: ")
    if want("tsan"):
        compile_variant("build-tsan", ["-Db_sanitize=thread", "-Db_lundef=false"])
        run_suites(tally, "build-tsan", ["unit", "contract", "net", "e2e", "crash"], {**SANITIZED, "BACKSTOP_SUBSET": "1"}, "tsan: ",
                   lambda t: threaded(t) and (full or t["name"] != "contract"))
    if want("fuzz"):
        outcome(tally, "fuzz smoke", ["./dev", "fuzz", "60" if full else "8"], {}, 1800)

    for failure in tally.failures:
        say(f"failed: {failure}")
    say(f"took {time.time() - args.since:.0f} s")
    if tally.skipped:
        say(f"{tally.skipped} skipped")
    say(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
