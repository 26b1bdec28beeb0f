"""Who may include whom: fails on every include that the layer table does not allow."""
import re
import subprocess
import sys

# folder -> folders whose headers it may include besides its own; "folder/file.h" allows one header.
MAY = {
    "base": set(),
    "core": {"base"},
    "sys": {"base"},
    "json": {"base"},
    "db": {"base"},
    "store": {"base", "core", "sys", "db", "json/write.h"},
    "net": {"base", "sys", "core/facts.h"},
    "door": {"base", "core", "sys", "json", "store/store.h"},
    "engine": {"base", "core", "sys", "json", "store/store.h", "store/committer.h", "net/caller.h"},
    "keep": {"base", "core", "sys", "store/store.h", "store/committer.h"},
    "alert": {"base", "core", "sys", "json/write.h", "store/store.h", "store/committer.h", "net/caller.h"},
    "api": {"base", "core", "sys", "json", "door/door.h", "store/store.h", "store/committer.h", "net/http.h"},
    "app": {"base", "core", "sys", "json", "db", "store", "net", "door", "engine", "keep", "alert", "api"},
}
# Client libraries stay behind one folder each.
ONLY_IN = {
    "sqlite3.h": {"db"}, "curl/curl.h": {"net", "app"}, "microhttpd.h": {"net"}, "yajl/": {"json"},
    "jansson.h": {"engine", "api", "app"}, "yaml.h": {"app"}, "openssl/": {"sys", "net"}, "systemd/": {"app"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)


def problems_of(path, text):
    folder = path.split("/")[1]
    for match in INCLUDE.finditer(text):
        own, system = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if own:
            target = own.split("/")[0]
            if target != folder and target not in MAY[folder] and own not in MAY[folder]:
                yield f"{path}:{line}: {folder} may not include {own}"
        for prefix, folders in ONLY_IN.items():
            if system and system.startswith(prefix) and folder not in folders:
                yield f"{path}:{line}: <{system}> belongs in {', '.join(sorted(folders))} only"


def main():
    files = subprocess.check_output(["git", "ls-files", "src/*.c", "src/*.h"], text=True).split()
    found = [p for path in files for p in problems_of(path, open(path, encoding="utf-8").read())]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
