"""Whole-process figures on stated data, each beside a yardstick of the same run. `./dev bench [NAME…]` with the names below.

Data: 500-byte payloads, synchronous=FULL, checkpoints included, the load generator on the same cores. Request ids in two
shapes: `ordered` by time, and `random` (32 characters); business and order numbers are ordered in both."""
import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import time

import empty
import fair
import peers
import size
import strain
from kit import OPEN_FILES, Bench

WORKS = [*empty.WORKS, *size.WORKS, *peers.WORKS, *strain.WORKS, *fair.WORKS]


def machine(folder):
    """What the figures were taken on; a durable write of one page tells more of a disk than its name."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    took = []
    with tempfile.NamedTemporaryFile(dir=folder) as f:
        for _ in range(200):
            began = time.monotonic()
            os.write(f.fileno(), b"x" * 4096)
            os.fdatasync(f.fileno())
            took.append(time.monotonic() - began)
    return f"{os.cpu_count()} × {cpu}, load {os.getloadavg()[0]:.1f}, fdatasync of a page {1e3 * sorted(took)[100]:.2f} ms in {folder}"


def table(rows):
    """The same as Markdown."""
    lines = [("work", "figure", "aim", "beside, in the same run"), ("---",) * 4, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def arguments():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                   epilog="\n".join(f"  {w.__name__:<11} {w.__doc__}" for w in WORKS))
    args.add_argument("names", nargs="*", choices=[[], *(w.__name__ for w in WORKS)], metavar="NAME")
    args.add_argument("--build", default="build-release")
    args.add_argument("--runs", type=int, default=3, help="the median of so many is shown")
    args.add_argument("--tasks", type=int, default=1_000_000, help="the size of a store of 1,000,000 tasks; smaller only for trying")
    args.add_argument("--minutes", type=float, default=10, help="how long `mixed` runs")
    args.add_argument("--folder", help="where the stores are made; needs some 15 GB, on a disk that is one")
    return args.parse_args()


def main():
    args = arguments()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard) if hard != resource.RLIM_INFINITY else OPEN_FILES, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bench = Bench(args)
    try:
        print(machine(bench.folder), flush=True)
        for work in WORKS:
            if not args.names or work.__name__ in args.names:
                began = time.monotonic()
                work(bench)
                print(f"… {work.__name__} took {time.monotonic() - began:.0f} s", flush=True)
        print(table(bench.rows))
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
