-- What only SQLite says this way.

-- name: store_kind
-- Number of tables, and the mark that the first migration sets.
SELECT (SELECT count(*) FROM sqlite_master WHERE type = 'table'),
    (SELECT application_id FROM pragma_application_id)

-- name: checkpoint_passive
PRAGMA wal_checkpoint(PASSIVE)

-- name: checkpoint_restart
PRAGMA wal_checkpoint(RESTART)

-- name: integrity
PRAGMA integrity_check(20)

-- name: quick_check
PRAGMA quick_check(1)

-- name: store_bytes
SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)
