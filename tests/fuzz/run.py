"""Runs every fuzz target: the regressions first, then what libFuzzer makes of the corpus in the time given. Prints TAP and
writes nothing into the tree: what is found is shown as hex, to be kept as regression/<target>/<name>."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = ["-timeout=20", "-rss_limit_mb=1024", "-malloc_limit_mb=512", "-max_len=4096", "-print_final_stats=1"]
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=0:allocator_may_return_null=1",
              "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
TELLS = re.compile(r"this must hold|runtime error|ERROR: |^SUMMARY|^\s+#\d+ .*(fuzz_\w+\.c|src/)", re.M)


def files(folder):
    return sorted(e.path for e in os.scandir(folder) if e.is_file()) if os.path.isdir(folder) else []


def run(binary, args, temp, limit):
    """The exit code and what was printed."""
    try:
        done = subprocess.run([binary, *args], cwd=temp, env={**os.environ, **SANITIZERS, "TMPDIR": temp}, timeout=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace") + f"\nERROR: not ended after {limit} s"


def explain(output):
    lines = [line.strip() for line in output.splitlines() if TELLS.search(line)]
    return lines[:12] or output.splitlines()[-12:]


def shown(path):
    with open(path, "rb") as f:
        return f.read().hex()


def replay(binary, target, temp):
    """What is wrong with the regressions, one after the other, so that one does not hide another."""
    wrong = []
    known = files(os.path.join(HERE, "regression", target))
    for path in known:
        code, output = run(binary, ["-runs=1", *LIMITS, f"-artifact_prefix={temp}/", path], temp, 60)
        if code:
            wrong += [f"regression {os.path.basename(path)} is back", *explain(output), f"input {shown(path)}"]
    return wrong, len(known)


def fuzz(binary, target, temp, seconds):
    """What is found, and how many inputs were tried."""
    grown = os.path.join(temp, "corpus")
    os.mkdir(grown)
    seeds = [d for d in (os.path.join(HERE, kind, target) for kind in ("corpus", "regression")) if os.path.isdir(d)]
    words = os.path.join(HERE, "words", target)
    words = [f"-dict={words}"] if os.path.exists(words) else []
    # libFuzzer writes only into the first folder and what it finds to the prefix
    code, output = run(binary, [*LIMITS, *words, f"-max_total_time={seconds}", f"-artifact_prefix={temp}/", grown, *seeds],
                       temp, seconds + 120)
    runs = re.search(r"number_of_executed_units: (\d+)", output)
    wrong = []
    if code:
        found = [p for p in files(temp) if re.match(r"(crash|leak|oom|timeout|slow-unit)-", os.path.basename(p))]
        seed = re.search(r"INFO: Seed: (\d+)", output)
        wrong = [f"exit code {code}, seed {seed.group(1) if seed else 'unknown'}", *explain(output)]
        wrong += [f"input {shown(p)}" for p in found]
    return wrong, int(runs.group(1)) if runs else 0


def one(build, target, seconds):
    """A target's TAP line without its number, and its comment lines."""
    binary = os.path.join(build, "fuzz_" + target)
    temp = tempfile.mkdtemp(prefix="fuzz-")
    began = time.monotonic()
    try:
        wrong, known = replay(binary, target, temp)
        left = max(1, round(seconds - (time.monotonic() - began)))
        found, runs = fuzz(binary, target, temp, left)
        wrong += found
        if runs == 0 and not wrong:
            wrong = ["not one input was tried"]
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    return not wrong, f"fuzz {target}: {runs} runs, {known} regressions", wrong


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("seconds", nargs="?", type=int, default=60, help="for each target (default: 60)")
    args.add_argument("--build", default="build-fuzz", help="where the targets were built")
    args.add_argument("--only", default="", help="comma-separated targets")
    args = args.parse_args()
    build = os.path.join(os.path.abspath(args.build), "tests", "fuzz")
    targets = [e.name[5:-2] for e in sorted(os.scandir(HERE), key=lambda e: e.name) if re.fullmatch(r"fuzz_\w+\.c", e.name)]
    if args.only:
        targets = [t for t in targets if t in args.only.split(",")]
    print(f"1..{len(targets)}", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for n, (good, name, wrong) in enumerate(pool.map(lambda t: one(build, t, args.seconds), targets), 1):
            failed += not good
            print(f"{'ok' if good else 'not ok'} {n} - {name}", flush=True)
            for line in wrong:
                print("# " + line, flush=True)
    return 1 if failed or not targets else 0


if __name__ == "__main__":
    sys.exit(main())
