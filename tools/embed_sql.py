#!/usr/bin/env python3
"""Turns sql/ into db/sql.h (enum bs_sql) and sql.c (statement texts per dialect, migrations).

Refuses a dialect with a missing or an unknown name, migrations whose numbers have gaps or differ
between dialects, and an UPDATE of a task that is not fenced (check_fence below).

usage: embed_sql.py SQL_DIR OUT_H OUT_C
"""
import re
import sys
from pathlib import Path


class Refused(Exception):
    pass


def read_statements(path, fragments):
    """-- name: X and -- fragment: X begin an item; {x} inside a text is replaced by a fragment."""
    found, kind, name, lines, notes = {}, None, None, [], {}

    def close():
        if not name:
            return
        text = " ".join(" ".join(lines).split()).rstrip(";").rstrip()
        for key, value in fragments.items():
            text = text.replace("{" + key + "}", value)
        if not text:
            raise Refused(f"{path}: {name} has no text")
        if kind == "fragment":
            fragments[name] = text
            return
        if name in found:
            raise Refused(f"{path}: {name} is there twice")
        found[name] = text
        check_fence(path, name, text, notes.get(name))

    for number, line in enumerate(path.read_text().splitlines(), 1):
        begin = re.match(r"--\s*(name|fragment):\s*(\S+)\s*$", line)
        if begin:
            close()
            kind, name, lines = begin[1], begin[2], []
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise Refused(f"{path}:{number}: bad name {name}")
            continue
        unfenced = re.match(r"\s*--\s*unfenced:\s*(\S.*)$", line)
        if unfenced:
            notes[name] = unfenced[1]
        code = line.split("--", 1)[0]
        if code.strip() and not name:
            raise Refused(f"{path}:{number}: a statement before the first name")
        lines.append(code)
    close()
    return found


def check_fence(path, name, text, unfenced):
    """An UPDATE of a task names the expected state, and the token where it is leased."""
    if not re.match(r"UPDATE\s+task\b", text, re.I) or unfenced:
        return
    where = re.split(r"\bWHERE\b", text, 1, re.I)
    guard = where[1] if len(where) == 2 else ""
    if not re.search(r"task_status\s*(=|IN)", guard):
        raise Refused(f"{path}: {name} updates a task without naming the expected state")
    leased = re.search(r"task_status\s*(=|IN)[^A-Z]*'PROCESSING'", guard)
    if leased and not re.search(r"lease_token\s*=", guard):
        raise Refused(f"{path}: {name} updates a leased task without naming its token")


def read_migrations(folder):
    rows = []
    for path in sorted(folder.glob("*.sql")):
        parts = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
        if not parts:
            raise Refused(f"{path}: migrations are named NNNN_name.sql")
        rows.append((int(parts[1]), parts[2], path.read_text()))
    if [number for number, _, _ in rows] != list(range(1, len(rows) + 1)):
        raise Refused(f"{folder}: numbers must run from 1 without a gap")
    return rows


def read_all(root):
    fragments = {}
    common = read_statements(root / "common.sql", fragments)
    dialects = {}
    for folder in sorted(p for p in root.iterdir() if (p / "migrations").is_dir()):
        own = {}
        for path in sorted(folder.glob("*.sql")):
            own.update(read_statements(path, dict(fragments)))
        dialects[folder.name] = (own, read_migrations(folder / "migrations"))
    names = set(common)
    for own, _ in dialects.values():
        names |= set(own)
    for dialect, (own, _) in dialects.items():
        missing = names - set(common) - set(own)
        if missing:
            raise Refused(f"{dialect} lacks {', '.join(sorted(missing))}")
    plans = {tuple((n, name) for n, name, _ in rows) for _, rows in dialects.values()}
    if len(plans) != 1:
        raise Refused("the dialects' migrations have different numbers or names")
    return common, dialects, sorted(names)


def c_string(text):
    body = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n    ".join('"' + line + '\\n"' for line in body.split("\n")) if "\n" in body else f'"{body}"'


def header(names):
    items = "\n".join(f"    BS_SQL_{n.upper()}," for n in names)
    return f"""/* Generated from sql/ by tools/embed_sql.py: the names of all statements. */
#pragma once

#include <stdint.h>

enum bs_sql {{
{items}
    BS_SQL_COUNT
}};

struct bs_migration {{
    int32_t number;
    const char *name;
    const char *text;
}};

struct bs_dialect {{
    const char *name;
    const char *const *statements; /* BS_SQL_COUNT of them */
    const struct bs_migration *migrations;
    uint32_t migrations_n;
}};

extern const struct bs_dialect bs_dialects[];
extern const uint32_t bs_dialects_n;
extern const char *const bs_sql_names[BS_SQL_COUNT];
"""


def source(common, dialects, names):
    out = ["/* Generated from sql/ by tools/embed_sql.py. */", '#include "db/sql.h"', ""]
    out.append("const char *const bs_sql_names[BS_SQL_COUNT] = {")
    out += [f'    [BS_SQL_{n.upper()}] = "{n}",' for n in names] + ["};", ""]
    for dialect, (own, migrations) in dialects.items():
        out.append(f"static const char *const statements_{dialect}[BS_SQL_COUNT] = {{")
        out += [f"    [BS_SQL_{n.upper()}] = {c_string(own.get(n, common.get(n)))}," for n in names]
        out += ["};", "", f"static const struct bs_migration migrations_{dialect}[] = {{"]
        out += [f'    {{ {number}, "{name}",\n    {c_string(text)} }},' for number, name, text in migrations]
        out += ["};", ""]
    out.append("const struct bs_dialect bs_dialects[] = {")
    for dialect, (_, migrations) in dialects.items():
        out.append(f'    {{ "{dialect}", statements_{dialect}, migrations_{dialect}, {len(migrations)} }},')
    out += ["};", f"const uint32_t bs_dialects_n = {len(dialects)};", ""]
    return "\n".join(out)


def main(args):
    root, out_h, out_c = map(Path, args)
    try:
        common, dialects, names = read_all(root)
    except Refused as why:
        sys.exit(f"embed_sql: {why}")
    out_h.write_text(header(names))
    out_c.write_text(source(common, dialects, names))


if __name__ == "__main__":
    main(sys.argv[1:])
