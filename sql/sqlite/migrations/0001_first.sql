-- The first schema. Times are microseconds since 1970 in UTC; empty text is NULL; ids are the
-- program's own. The view compensation_task at the end is the form for people.

PRAGMA application_id = 1112757328;

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('schema_version', 0), ('tokens_version', 1),
    ('purged_id', 0);

CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL CHECK (length(request_id) BETWEEN 1 AND 128),
    biz_type TEXT NOT NULL CHECK (length(biz_type) BETWEEN 1 AND 32),
    merchant_no TEXT NOT NULL,
    biz_id TEXT NOT NULL,
    effect_key TEXT,
    serial_key TEXT,
    order_no TEXT,
    payment_no TEXT,
    channel TEXT,
    channel_trade_no TEXT,
    refund_no TEXT,
    source TEXT NOT NULL,
    parent_id INTEGER,
    amount INTEGER,
    currency TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Not IN (…): SQLite builds a table for a list of more than two, at every insert and update.
    task_status TEXT NOT NULL CHECK (task_status = 'WAITING' OR task_status = 'PROCESSING'
        OR task_status = 'RETRY' OR task_status = 'SUCCESS' OR task_status = 'FAILED'
        OR task_status = 'MANUAL' OR task_status = 'CLOSED'),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    retry_count INTEGER NOT NULL DEFAULT 0,
    max_retry_count INTEGER NOT NULL,
    attempt_no INTEGER NOT NULL DEFAULT 0,
    crash_count INTEGER NOT NULL DEFAULT 0,
    defer_count INTEGER NOT NULL DEFAULT 0,
    not_found_count INTEGER NOT NULL DEFAULT 0,
    first_not_found_at INTEGER,
    outcome_unknown INTEGER NOT NULL DEFAULT 0 CHECK (outcome_unknown IN (0, 1)),
    last_outcome TEXT,
    last_error_code TEXT,
    last_error_msg TEXT,
    manual_code TEXT,
    conclusion TEXT,
    close_pending INTEGER NOT NULL DEFAULT 0
        CHECK (close_pending = 0 OR (close_pending BETWEEN 1 AND 3 AND task_status = 'PROCESSING')),
    next_execute_at INTEGER,
    due_at INTEGER CHECK (due_at IS NULL OR task_status IN ('WAITING', 'RETRY')),
    blocked_key TEXT CHECK (blocked_key IS NULL
        OR (due_at IS NULL AND task_status IN ('WAITING', 'RETRY'))),
    last_execute_at INTEGER,
    run_key TEXT CHECK (run_key IS NULL OR task_status = 'PROCESSING'
        OR (task_status = 'WAITING' AND call_until IS NOT NULL)),
    call_until INTEGER,
    locked_by TEXT,
    locked_at INTEGER,
    locked_until INTEGER CHECK ((locked_until IS NULL) = (task_status <> 'PROCESSING')),
    lease_token INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 1,
    updated_at INTEGER NOT NULL,
    -- For max_age: since when its budget counts (NULL: since created_at), how long it was blocked or
    -- held meanwhile, and since when it is blocked.
    fresh_at INTEGER,
    idle_us INTEGER NOT NULL DEFAULT 0,
    blocked_at INTEGER CHECK ((blocked_at IS NULL) = (blocked_key IS NULL))
) STRICT;

-- What a claim looks through, queue by queue. Tasks that lost their lease twice stand in an index
-- of their own, so that passing them over costs nothing.
CREATE INDEX task_due ON task (biz_type, priority, due_at, id)
    WHERE due_at IS NOT NULL AND crash_count < 2;
CREATE INDEX task_due_suspect ON task (biz_type, priority, due_at, id)
    WHERE due_at IS NOT NULL AND crash_count >= 2;
CREATE INDEX task_blocked ON task (blocked_key, biz_type, next_execute_at, id)
    WHERE blocked_key IS NOT NULL;
-- One running task for each business object: the database itself refuses a second.
CREATE UNIQUE INDEX task_run ON task (run_key) WHERE run_key IS NOT NULL;
CREATE INDEX task_lease ON task (locked_until, id) WHERE locked_until IS NOT NULL;
CREATE INDEX task_attention ON task (task_status, id) WHERE task_status IN ('MANUAL', 'RETRY');
CREATE INDEX task_manual ON task (biz_type, updated_at) WHERE task_status = 'MANUAL';
CREATE INDEX task_biz_id ON task (biz_id, id);
CREATE INDEX task_order_no ON task (order_no, id) WHERE order_no IS NOT NULL;
CREATE INDEX task_payment_no ON task (payment_no, id) WHERE payment_no IS NOT NULL;
CREATE INDEX task_channel_trade_no ON task (channel_trade_no, id)
    WHERE channel_trade_no IS NOT NULL;
CREATE INDEX task_refund_no ON task (refund_no, id) WHERE refund_no IS NOT NULL;

-- Finished tasks that nobody has touched for long: rows of task as they were. Payload, log and keys
-- stay where they are. Queues and claims never look here.
CREATE TABLE task_history (
    id INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL,
    biz_type TEXT NOT NULL,
    merchant_no TEXT NOT NULL,
    biz_id TEXT NOT NULL,
    effect_key TEXT,
    serial_key TEXT,
    order_no TEXT,
    payment_no TEXT,
    channel TEXT,
    channel_trade_no TEXT,
    refund_no TEXT,
    source TEXT NOT NULL,
    parent_id INTEGER,
    amount INTEGER,
    currency TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    task_status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    retry_count INTEGER NOT NULL,
    max_retry_count INTEGER NOT NULL,
    attempt_no INTEGER NOT NULL,
    crash_count INTEGER NOT NULL,
    defer_count INTEGER NOT NULL,
    not_found_count INTEGER NOT NULL,
    first_not_found_at INTEGER,
    outcome_unknown INTEGER NOT NULL,
    last_outcome TEXT,
    last_error_code TEXT,
    last_error_msg TEXT,
    manual_code TEXT,
    conclusion TEXT,
    close_pending INTEGER NOT NULL,
    next_execute_at INTEGER,
    due_at INTEGER,
    blocked_key TEXT,
    last_execute_at INTEGER,
    run_key TEXT,
    call_until INTEGER,
    locked_by TEXT,
    locked_at INTEGER,
    locked_until INTEGER,
    lease_token INTEGER NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    fresh_at INTEGER,
    idle_us INTEGER NOT NULL,
    blocked_at INTEGER
) STRICT;
CREATE INDEX task_history_biz_id ON task_history (biz_id, id);
CREATE INDEX task_history_order_no ON task_history (order_no, id) WHERE order_no IS NOT NULL;
CREATE INDEX task_history_payment_no ON task_history (payment_no, id) WHERE payment_no IS NOT NULL;
CREATE INDEX task_history_channel_trade_no ON task_history (channel_trade_no, id)
    WHERE channel_trade_no IS NOT NULL;
CREATE INDEX task_history_refund_no ON task_history (refund_no, id) WHERE refund_no IS NOT NULL;

-- Apart from the task, because every update rewrites a whole row.
CREATE TABLE task_payload (
    task_id INTEGER PRIMARY KEY,
    request_snapshot BLOB,
    payload_is_json INTEGER NOT NULL,
    extra_data TEXT
) STRICT;

-- Permanent keys: never archived with their tasks.
CREATE TABLE request_key (
    request_id TEXT PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    task_id INTEGER NOT NULL,
    submit_id INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE effect_key (
    merchant_no TEXT NOT NULL,
    biz_type TEXT NOT NULL,
    effect_key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    task_id INTEGER NOT NULL,
    PRIMARY KEY (merchant_no, biz_type, effect_key)
) STRICT, WITHOUT ROWID;

-- A claim and its end are one row, written at the end. id is the operation's: a row that is
-- written again is recognised.
CREATE TABLE task_log (
    task_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    from_status TEXT,
    to_status TEXT,
    attempt_no INTEGER,
    token INTEGER,
    claimed_at INTEGER,
    node TEXT,
    outcome TEXT,
    code TEXT,
    message TEXT,
    effect TEXT,
    excerpt TEXT,
    http_status INTEGER,
    duration_ms INTEGER,
    via_failed INTEGER NOT NULL DEFAULT 0,
    close_pending INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    operator TEXT,
    reason TEXT,
    conclusion TEXT,
    version INTEGER,
    PRIMARY KEY (task_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_stat (
    node INTEGER NOT NULL,
    biz_type TEXT NOT NULL,
    task_status TEXT NOT NULL,
    currency TEXT NOT NULL,
    n INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    PRIMARY KEY (node, biz_type, task_status, currency)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_state (
    biz_type TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    operator TEXT,
    at INTEGER,
    orphan_since INTEGER
) STRICT, WITHOUT ROWID;

-- Spans in which a queue could not run (biz_type '': none could, the process was down).
CREATE TABLE queue_stop (
    biz_type TEXT NOT NULL,
    from_at INTEGER NOT NULL,
    to_at INTEGER NOT NULL,
    PRIMARY KEY (biz_type, from_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE alert_event (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    biz_type TEXT,
    task_id INTEGER,
    message TEXT,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    last_op INTEGER NOT NULL,
    open INTEGER NOT NULL,
    recovered_at INTEGER,
    recovered_message TEXT,
    unplanned INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX alert_event_open ON alert_event (kind, subject) WHERE open = 1;
-- unplanned: 1 that it began, 2 that it recovered, is still to be told (planned as deliveries).
CREATE INDEX alert_event_unplanned ON alert_event (id) WHERE unplanned > 0;

-- What is told to whom. phase: 1 raised, 2 recovered; state: pending, sent, given_up.
CREATE TABLE alert_delivery (
    alert_id INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    deliverer TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    code TEXT,
    message TEXT,
    created_at INTEGER NOT NULL,
    sent_at INTEGER,
    PRIMARY KEY (alert_id, phase, deliverer)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_delivery_pending ON alert_delivery (deliverer, alert_id, phase)
    WHERE state = 'pending';

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    operator TEXT NOT NULL,
    action TEXT NOT NULL,
    object TEXT NOT NULL,
    reason TEXT,
    conclusion TEXT,
    order_no TEXT,
    before TEXT,
    after TEXT
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TABLE api_token (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    queues TEXT,
    hash BLOB NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE UNIQUE INDEX api_token_hash ON api_token (hash);
CREATE UNIQUE INDEX api_token_name ON api_token (name) WHERE revoked_at IS NULL;

CREATE VIEW compensation_task AS
SELECT CAST(t.id AS TEXT) AS task_no, t.request_id, t.biz_type, t.merchant_no, t.biz_id,
    t.effect_key, t.order_no, t.payment_no, t.channel, t.channel_trade_no, t.refund_no, t.source,
    t.task_status, t.priority, t.retry_count, t.max_retry_count, t.attempt_no, t.crash_count,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.next_execute_at / 1e6, 'unixepoch') AS next_execute_time,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.last_execute_at / 1e6, 'unixepoch') AS last_execute_time,
    t.last_outcome, t.outcome_unknown, t.last_error_code, t.last_error_msg, t.manual_code,
    t.conclusion, p.request_snapshot, p.extra_data, t.amount, t.currency, t.serial_key, t.locked_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.locked_at / 1e6, 'unixepoch') AS locked_time,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.locked_until / 1e6, 'unixepoch') AS locked_until,
    t.lease_token, t.close_pending, CAST(t.parent_id AS TEXT) AS parent_task_no, t.version,
    t.created_by, strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1e6, 'unixepoch') AS create_time,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1e6, 'unixepoch') AS update_time
FROM (
    SELECT id, request_id, biz_type, merchant_no, biz_id, effect_key, serial_key, order_no,
        payment_no, channel, channel_trade_no, refund_no, source, parent_id, amount, currency,
        created_by, created_at, task_status, priority, retry_count, max_retry_count, attempt_no,
        crash_count, outcome_unknown, last_outcome, last_error_code, last_error_msg, manual_code,
        conclusion, close_pending, next_execute_at, last_execute_at, locked_by, locked_at,
        locked_until, lease_token, version, updated_at
    FROM task
    UNION ALL SELECT id, request_id, biz_type, merchant_no, biz_id, effect_key, serial_key, order_no,
        payment_no, channel, channel_trade_no, refund_no, source, parent_id, amount, currency,
        created_by, created_at, task_status, priority, retry_count, max_retry_count, attempt_no,
        crash_count, outcome_unknown, last_outcome, last_error_code, last_error_msg, manual_code,
        conclusion, close_pending, next_execute_at, last_execute_at, locked_by, locked_at,
        locked_until, lease_token, version, updated_at
    FROM task_history
) t LEFT JOIN task_payload p ON p.task_id = t.id;
