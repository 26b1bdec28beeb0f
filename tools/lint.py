"""The checks with no human in them. Each prints what is wrong; the last line counts them."""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def listed(*patterns):
    return subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", *patterns], text=True, cwd=ROOT).split()


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def layers():
    """Who may include whom."""
    run = subprocess.run([sys.executable, "tools/check_layers.py"], cwd=ROOT, text=True, capture_output=True)
    return run.stdout.splitlines()


def comments():
    """No // comments and no notes to oneself in C; every C file begins by saying what it owns."""
    found = []
    quoted = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/', re.S)
    for path in listed("*.c", "*.h"):
        text = read(path)
        bare = quoted.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        for n, line in enumerate(bare.split("\n"), 1):
            if "//" in line:
                found.append(f"{path}:{n}: a // comment")
        for n, line in enumerate(text.split("\n"), 1):
            if re.search(r"\b(TODO|FIXME|HACK)\b|\bXXX\b(?!\")", line):
                found.append(f"{path}:{n}: unfinished by its own words")
        if not text.startswith("/*"):
            found.append(f"{path}:1: does not begin by saying what it owns")
    return found


def sizes():
    """A file has one subject: at most 600 lines."""
    return [f"{p}: {n} lines" for p in listed("*.c", "*.h", "*.py", "*.sql") if (n := read(p).count("\n")) > 600]


def fences():
    """Every update of a task names the expected state and the lease token, or says why not."""
    found = []
    for path in listed("sql/*.sql"):
        if "/migrations/" in path:
            continue
        for block in re.split(r"(?m)^-- name: ", read(path))[1:]:
            name = block.split("\n", 1)[0].strip()
            body = "\n".join(line for line in block.lower().splitlines() if not line.startswith("--") or "unfenced:" in line)
            if not re.search(r"\bupdate\s+task\b", body) or "-- unfenced:" in body:
                continue
            where = body.rsplit("where", 1)[-1]
            if "task_status" not in where or "lease_token" not in where:
                found.append(f"{path}: {name} updates a task without its state and token")
    return found


def clocks():
    """Times are arguments: no NOW(), no second wall clock outside sys/."""
    found = []
    for path in listed("sql/*.sql"):
        if re.search(r"(?i)\bnow\s*\(|current_timestamp|datetime\s*\(\s*'now'", read(path)):
            found.append(f"{path}: reads the database's clock")
    for path in listed("src/*.c"):
        if path.startswith("src/sys/"):
            continue
        if re.search(r"\bgettimeofday\s*\(|\btime\s*\(\s*NULL|CLOCK_REALTIME", read(path)):
            found.append(f"{path}: reads a clock of its own")
    return found


def purity():
    """The objects of core use base and mem*/str* only."""
    objects = glob.glob(os.path.join(ROOT, "build/src/core/libcore.a.p/*.o"))
    if not objects:
        return ["build/ has no core objects: run ./dev lint, which builds it"]
    allowed = re.compile(r"^(bs_|mem|str|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__ubsan|__asan|__tsan|__(u)?(div|mod)ti3)")
    found = []
    for obj in objects:
        for line in subprocess.check_output(["nm", "-u", obj], text=True).splitlines():
            symbol = line.split()[-1]
            if not allowed.match(symbol):
                found.append(f"{os.path.basename(obj)}: uses {symbol}")
    return found


def configuration():
    """Every configuration key is in docs/OPERATING.md and in the sample file."""
    binary = os.path.join(ROOT, "build/backstop")
    if not os.path.exists(binary):
        return ["build/backstop is missing: run ./dev lint, which builds it"]
    keys = subprocess.check_output([binary, "check-config", "--list-keys"], text=True).split()
    manual, sample = read("docs/OPERATING.md"), read("backstop.sample.yaml")
    found = [f"docs/OPERATING.md does not mention `{k}`" for k in keys if f"`{k}`" not in manual]
    return found + [f"backstop.sample.yaml does not mention {k}" for k in keys
                    if not re.search(rf"\b{re.escape(k.split('.')[-1])}\b", sample)]


def events():
    """Every event of the log is in docs/OPERATING.md; those of api and engine may be faults inside, which share a row."""
    manual = read("docs/OPERATING.md")
    named = {m for p in listed("src/*.c") for m in re.findall(r'BS_LOG_[A-Z]+,\s*"([a-z_]+\.[a-z_]+)"', read(p))}
    return [f"docs/OPERATING.md does not mention `{e}`" for e in sorted(named)
            if f"`{e}`" not in manual and not e.startswith(("api.", "engine."))]


def states():
    """docs/STATES.md is what the state table says."""
    tool = os.path.join(ROOT, "build/tools/gen_states")
    if not os.path.exists(tool):
        return ["build/tools/gen_states is missing: run ./dev lint, which builds it"]
    fresh = subprocess.check_output([tool], text=True)
    return [] if fresh == read("docs/STATES.md") else ["docs/STATES.md is stale: run build/tools/gen_states > docs/STATES.md"]


def links():
    """Every link between documents leads to a file."""
    found = []
    for path in listed("*.md"):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", read(path)):
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)):
                found.append(f"{path}: there is no {target}")
    return found


def format_():
    """clang-format decides (version 14)."""
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    run = subprocess.run([tool, "--dry-run", "-Werror", *listed("*.c", "*.h")], cwd=ROOT, text=True, capture_output=True)
    return sorted({line.split(":")[0] + ": not formatted" for line in run.stderr.splitlines() if "error:" in line})


def tidy():
    """Function size, nesting and complexity; bug patterns (clang-tidy, src/ only)."""
    commands = json.load(open(os.path.join(ROOT, "build/compile_commands.json"), encoding="utf-8"))
    files = sorted({os.path.relpath(os.path.join(c["directory"], c["file"]), ROOT) for c in commands})
    files = [f for f in files if f.startswith("src/")]
    found, step = set(), 6
    for i in range(0, len(files), 2 * step):
        jobs = [subprocess.Popen(["clang-tidy", "-p", "build", "--quiet", *part], cwd=ROOT, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                for part in (files[i:i + step], files[i + step:i + 2 * step]) if part]
        for job in jobs:
            found.update(re.sub(rf"^{re.escape(ROOT)}/", "", line) for line in job.communicate()[0].splitlines()
                         if re.search(r": (warning|error): ", line) and "src/" in line)
    return sorted(found)


QUICK = [layers, comments, sizes, fences, clocks, purity, configuration, events, states, links, format_]


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--tidy", action="store_true", help="also clang-tidy (minutes)")
    args.add_argument("--tap", action="store_true", help="one line a check, for the test runner")
    args = args.parse_args()
    failed, checks = 0, QUICK + ([tidy] if args.tidy else [])
    for n, check in enumerate(checks, 1):
        problems = check()
        failed += bool(problems)
        name = check.__doc__.split(".")[0].split(":")[0]
        print(f"{'not ok' if problems else 'ok'} {n} - {name}")
        for problem in problems[:60]:
            print(f"# {problem}")
    if not args.tap:
        print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
