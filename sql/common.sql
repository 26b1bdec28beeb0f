-- Every statement of the store, by name. Parameters are numbered; a fragment in braces stands for
-- a piece that several statements share. A dialect's folder replaces a statement by its name.

-- name: meta_get
SELECT value FROM meta WHERE name = ?1

-- name: meta_set
UPDATE meta SET value = ?2 WHERE name = ?1

-- name: meta_raise
UPDATE meta SET value = ?2 WHERE name = ?1 AND value < ?2

-- name: meta_bump
UPDATE meta SET value = value + 1 WHERE name = ?1

-- Where store time has been, about: written anew when it is older than ?2, or nonsense (after ?3).
-- name: time_high_set
INSERT INTO meta (name, value) VALUES ('time_high', ?1)
ON CONFLICT (name) DO UPDATE SET value = ?1 WHERE value NOT BETWEEN ?2 AND ?3

-- The order is that of enum col in src/store/row.c.
-- fragment: task_columns
t.id, t.request_id, t.biz_type, t.merchant_no, t.biz_id, t.effect_key, t.serial_key, t.order_no,
t.payment_no, t.channel, t.channel_trade_no, t.refund_no, t.source, t.parent_id, t.amount,
t.currency, t.created_by, t.created_at, t.task_status, t.priority, t.retry_count,
t.max_retry_count, t.attempt_no, t.crash_count, t.defer_count, t.not_found_count,
t.first_not_found_at, t.outcome_unknown, t.last_outcome, t.last_error_code, t.last_error_msg,
t.manual_code, t.conclusion, t.close_pending, t.next_execute_at, t.due_at, t.blocked_key,
t.last_execute_at, t.locked_by, t.locked_at, t.locked_until, t.lease_token, t.version, t.updated_at,
t.call_until

-- fragment: payload_columns
p.request_snapshot, p.payload_is_json, p.extra_data

-- name: task_insert
INSERT INTO task (id, request_id, biz_type, merchant_no, biz_id, effect_key, serial_key, order_no,
    payment_no, channel, channel_trade_no, refund_no, source, parent_id, amount, currency,
    created_by, created_at, updated_at, task_status, priority, retry_count, max_retry_count,
    last_error_code, last_error_msg, manual_code, next_execute_at, due_at, fresh_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)

-- name: payload_insert
INSERT INTO task_payload (task_id, request_snapshot, payload_is_json, extra_data)
VALUES (?1, ?2, ?3, ?4)

-- name: payload_get
SELECT request_snapshot FROM task_payload WHERE task_id = ?1

-- name: request_key_insert
INSERT INTO request_key (request_id, fingerprint, task_id, submit_id, at)
VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT DO NOTHING

-- name: request_key_get
SELECT fingerprint, task_id, submit_id FROM request_key WHERE request_id = ?1

-- name: request_key_link
UPDATE request_key SET task_id = ?2 WHERE request_id = ?1

-- name: request_key_delete
DELETE FROM request_key WHERE request_id = ?1 AND submit_id = ?2

-- name: effect_key_insert
INSERT INTO effect_key (merchant_no, biz_type, effect_key, fingerprint, task_id)
VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING

-- name: effect_key_get
SELECT fingerprint, task_id FROM effect_key
WHERE merchant_no = ?1 AND biz_type = ?2 AND effect_key = ?3

-- name: effect_key_free
DELETE FROM effect_key WHERE merchant_no = ?1 AND biz_type = ?2 AND effect_key = ?3 AND task_id = ?4

-- name: task_get
SELECT {task_columns} FROM task t WHERE t.id = ?1

-- name: task_whole
SELECT {task_columns}, {payload_columns}
FROM task t LEFT JOIN task_payload p ON p.task_id = t.id WHERE t.id = ?1

-- name: history_get
SELECT {task_columns} FROM task_history t WHERE t.id = ?1

-- name: history_whole
SELECT {task_columns}, {payload_columns}
FROM task_history t LEFT JOIN task_payload p ON p.task_id = t.id WHERE t.id = ?1

-- name: claim_scan
SELECT {task_columns}, {payload_columns}
FROM task t LEFT JOIN task_payload p ON p.task_id = t.id
WHERE t.biz_type = ?1 AND t.priority = ?2 AND t.due_at IS NOT NULL AND t.crash_count < 2
ORDER BY t.due_at, t.id LIMIT ?3

-- name: claim_scan_suspects
SELECT {task_columns}, {payload_columns}
FROM task t LEFT JOIN task_payload p ON p.task_id = t.id
WHERE t.biz_type = ?1 AND t.priority = ?2 AND t.due_at IS NOT NULL AND t.crash_count >= 2
ORDER BY t.due_at, t.id LIMIT ?3

-- name: claim_again
SELECT {task_columns}, {payload_columns}
FROM task t LEFT JOIN task_payload p ON p.task_id = t.id
WHERE t.locked_until = ?1 AND t.locked_by = ?2 AND t.biz_type = ?3
ORDER BY t.priority, t.next_execute_at, t.id

-- name: claim_take
-- unfenced: it makes the lease; the state, the due time and a smaller token are named
UPDATE task SET task_status = 'PROCESSING', attempt_no = attempt_no + 1, due_at = NULL,
    run_key = ?2, locked_by = ?3, locked_at = ?4, locked_until = ?5, lease_token = ?6,
    last_execute_at = ?4, call_until = NULL, version = version + 1, updated_at = ?4
WHERE id = ?1 AND task_status IN ('WAITING', 'RETRY') AND due_at IS NOT NULL AND lease_token < ?6
    AND NOT EXISTS (SELECT 1 FROM task holder WHERE holder.run_key = ?2 AND holder.id <> ?1)

-- name: claim_block
-- unfenced: nobody holds a lease on a waiting task; its state is named
UPDATE task SET due_at = NULL, blocked_key = serial_key, blocked_at = ?2
WHERE id = ?1 AND task_status IN ('WAITING', 'RETRY') AND due_at IS NOT NULL
    AND serial_key IS NOT NULL

-- name: due_next
SELECT due_at FROM task
WHERE biz_type = ?1 AND priority = ?2 AND due_at IS NOT NULL AND crash_count < 2
ORDER BY due_at, id LIMIT 1

-- name: due_next_suspect
SELECT due_at FROM task
WHERE biz_type = ?1 AND priority = ?2 AND due_at IS NOT NULL AND crash_count >= 2
ORDER BY due_at, id LIMIT 1

-- name: manual_oldest
SELECT updated_at FROM task
WHERE biz_type = ?1 AND task_status = 'MANUAL' ORDER BY updated_at LIMIT 1

-- name: blocked_first
SELECT id, biz_type, next_execute_at FROM task
WHERE blocked_key = ?1 AND biz_type > ?2
ORDER BY biz_type, next_execute_at, id LIMIT 1

-- name: blocked_first_of_queue
SELECT id, biz_type, next_execute_at FROM task
WHERE blocked_key = ?1 AND biz_type = ?2
ORDER BY next_execute_at, id LIMIT 1

-- name: blocked_free
-- unfenced: nobody holds a lease on a blocked task; its state and key are named
UPDATE task SET due_at = next_execute_at, blocked_key = NULL, blocked_at = NULL,
    idle_us = idle_us + max(?3 - blocked_at, 0)
WHERE id = ?1 AND blocked_key = ?2 AND task_status IN ('WAITING', 'RETRY')

-- The key of a business object stays taken (?19 is the call's deadline) while a call that was cut
-- after sending may still be at work.
-- name: task_finish
UPDATE task SET task_status = ?4, retry_count = ?5, crash_count = ?6, defer_count = ?7,
    not_found_count = ?8, first_not_found_at = ?9, outcome_unknown = ?10,
    last_outcome = COALESCE(?11, last_outcome),
    last_error_code = COALESCE(?12, last_error_code),
    last_error_msg = CASE WHEN ?12 IS NULL THEN last_error_msg ELSE ?13 END,
    manual_code = COALESCE(?14, manual_code), conclusion = ?15,
    next_execute_at = COALESCE(?16, next_execute_at), due_at = ?16,
    close_pending = 0, run_key = CASE WHEN ?19 IS NULL THEN NULL ELSE run_key END, call_until = ?19,
    locked_by = NULL, locked_at = NULL, locked_until = NULL, version = version + 1, updated_at = ?17
WHERE id = ?1 AND task_status = 'PROCESSING' AND lease_token = ?2 AND attempt_no = ?3
    AND close_pending = ?18

-- The same where no other try follows and no lease was lost: what stands in the indexes of due and
-- blocked rows is not named, so those are not opened.
-- name: task_end
UPDATE task SET task_status = ?4, retry_count = ?5, defer_count = ?7,
    not_found_count = ?8, first_not_found_at = ?9, outcome_unknown = ?10,
    last_outcome = COALESCE(?11, last_outcome),
    last_error_code = COALESCE(?12, last_error_code),
    last_error_msg = CASE WHEN ?12 IS NULL THEN last_error_msg ELSE ?13 END,
    manual_code = COALESCE(?14, manual_code), conclusion = ?15,
    close_pending = 0, run_key = NULL, call_until = ?19, locked_by = NULL, locked_at = NULL,
    locked_until = NULL, version = version + 1, updated_at = ?17
WHERE id = ?1 AND task_status = 'PROCESSING' AND lease_token = ?2 AND attempt_no = ?3
    AND close_pending = ?18

-- name: task_renew
UPDATE task SET locked_until = ?3
WHERE id = ?1 AND task_status = 'PROCESSING' AND lease_token = ?2 AND locked_until <= ?3

-- name: task_lease
SELECT locked_until FROM task WHERE id = ?1 AND task_status = 'PROCESSING' AND lease_token = ?2

-- name: lease_expired
SELECT {task_columns} FROM task t
WHERE t.locked_until <= ?1 ORDER BY t.locked_until, t.id LIMIT ?2

-- name: task_act
-- unfenced: nobody holds a lease outside PROCESSING; its state and version are named
UPDATE task SET task_status = ?4, retry_count = ?5, crash_count = ?6, defer_count = ?7,
    not_found_count = ?8, first_not_found_at = ?9, outcome_unknown = ?10,
    manual_code = COALESCE(?11, manual_code), conclusion = ?12,
    next_execute_at = COALESCE(?13, next_execute_at), due_at = ?13, blocked_key = NULL,
    blocked_at = NULL, fresh_at = CASE WHEN ?15 = 1 THEN ?14 ELSE fresh_at END,
    idle_us = CASE WHEN ?15 = 1 THEN 0
        ELSE idle_us + ?16 + max(?14 - COALESCE(blocked_at, ?14), 0) END,
    run_key = CASE WHEN ?4 = 'WAITING' THEN run_key ELSE NULL END,
    version = version + 1, updated_at = ?14
WHERE id = ?1 AND version = ?2 AND task_status = ?3 AND task_status <> 'PROCESSING'

-- A running task only learns what is to become of it; the lease goes on.
-- name: task_pend
UPDATE task SET close_pending = ?4, conclusion = ?5, version = version + 1, updated_at = ?6
WHERE id = ?1 AND version = ?2 AND task_status = 'PROCESSING' AND lease_token = ?3

-- name: log_insert
INSERT INTO task_log (task_id, id, at, event, from_status, to_status, attempt_no, token,
    claimed_at, node, outcome, code, message, effect, excerpt, http_status, duration_ms,
    via_failed, close_pending, next_at, operator, reason, conclusion, version)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
    ?21, ?22, ?23, ?24) ON CONFLICT DO NOTHING

-- fragment: log_columns
id, at, event, from_status, to_status, attempt_no, token, claimed_at, node, outcome, code, message,
effect, excerpt, http_status, duration_ms, via_failed, close_pending, next_at, operator, reason,
conclusion, version

-- name: log_get
SELECT {log_columns} FROM task_log WHERE task_id = ?1 AND id = ?2

-- name: log_attempt
SELECT {log_columns} FROM task_log
WHERE task_id = ?1 AND attempt_no = ?2 AND token = ?3 AND to_status IS NOT NULL
    AND to_status <> 'PROCESSING'
ORDER BY id DESC LIMIT 1

-- name: log_page
SELECT {log_columns} FROM task_log WHERE task_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3

-- name: log_state_before
SELECT to_status FROM task_log
WHERE task_id = ?1 AND id <= ?2 AND to_status IS NOT NULL ORDER BY id DESC LIMIT 1

-- name: log_first
SELECT from_status, claimed_at FROM task_log
WHERE task_id = ?1 AND to_status IS NOT NULL ORDER BY id LIMIT 1

-- name: log_excerpt
SELECT excerpt FROM task_log
WHERE task_id = ?1 AND outcome IS NOT NULL AND to_status IS NOT NULL ORDER BY id DESC LIMIT 1

-- name: stat_get
SELECT n, amount, unknown FROM queue_stat
WHERE node = ?1 AND biz_type = ?2 AND task_status = ?3 AND currency = ?4

-- name: stat_insert
INSERT INTO queue_stat (node, biz_type, task_status, currency, n, amount, unknown)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- name: stat_update
UPDATE queue_stat SET n = ?5, amount = ?6, unknown = ?7
WHERE node = ?1 AND biz_type = ?2 AND task_status = ?3 AND currency = ?4

-- name: stat_all
SELECT biz_type, task_status, currency, n, amount, unknown FROM queue_stat
ORDER BY biz_type, task_status, currency, node

-- name: alert_again
UPDATE alert_event SET count = count + 1, last_at = ?3, message = ?4, task_id = ?7,
    last_op = CASE WHEN last_op > ?5 THEN last_op ELSE ?5 END
WHERE kind = ?1 AND subject = ?2 AND open = 1 AND (?6 = 0 OR last_op < ?5)

-- Ids grow, and are about those of the operation. ?8: it may have been done before.
-- name: alert_insert
INSERT INTO alert_event (id, kind, subject, biz_type, task_id, message, count, first_at, last_at,
    last_op, open, unplanned)
SELECT CASE WHEN n.top < ?7 THEN ?7 ELSE n.top + 1 END, ?1, ?2, ?3, ?4, ?5, 1, ?6, ?6, ?7, 1, 1
FROM (SELECT COALESCE(MAX(id), 0) AS top FROM alert_event) n
WHERE ?8 = 0 OR NOT EXISTS (SELECT 1 FROM alert_event e
    WHERE e.kind = ?1 AND e.subject = ?2 AND e.last_op >= ?7)
ON CONFLICT DO NOTHING

-- ?6: only when nothing came after it. ?8: it may have been done before, and then an alert that a
-- later operation began is another one.
-- name: alert_clear
UPDATE alert_event SET open = 0, recovered_at = ?3, recovered_message = ?4,
    unplanned = unplanned | ?5
WHERE kind = ?1 AND subject = ?2 AND open = 1 AND last_at <= ?6 AND (?8 = 0 OR last_op <= ?7)

-- What could not be written while it lasted.
-- name: alert_record
INSERT INTO alert_event (id, kind, subject, message, count, first_at, last_at, last_op, open,
    recovered_at, recovered_message, unplanned)
VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5, ?1, 0, ?6, ?7, 2) ON CONFLICT DO NOTHING

-- name: alert_planned
UPDATE alert_event SET unplanned = unplanned & ?2 WHERE id = ?1

-- name: delivery_insert
INSERT INTO alert_delivery (alert_id, phase, deliverer, state, attempts, next_at, code, message,
    created_at, sent_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING

-- Who is not told that it began is not told that it is over.
-- name: delivery_insert_recovered
INSERT INTO alert_delivery (alert_id, phase, deliverer, state, attempts, next_at, created_at)
SELECT r.alert_id, 2, r.deliverer, 'pending', 0, ?3, ?4 FROM alert_delivery r
WHERE r.alert_id = ?1 AND r.phase = 1 AND r.deliverer = ?2 AND r.state <> 'given_up'
ON CONFLICT DO NOTHING

-- name: delivery_drop_recovered
UPDATE alert_delivery SET state = 'given_up', code = ?3, message = ?4
WHERE alert_id = ?1 AND phase = 2 AND deliverer = ?2 AND state = 'pending'
    AND EXISTS (SELECT 1 FROM alert_delivery r WHERE r.alert_id = ?1 AND r.phase = 1
        AND r.deliverer = ?2 AND r.state = 'given_up')

-- name: delivery_told
UPDATE alert_delivery SET state = ?4, attempts = ?5, next_at = ?6, code = ?7, message = ?8,
    sent_at = ?9
WHERE alert_id = ?1 AND phase = ?2 AND deliverer = ?3 AND state = 'pending' AND attempts <= ?5

-- name: stop_note
INSERT INTO queue_stop (biz_type, from_at, to_at) VALUES (?1, ?2, ?3)
ON CONFLICT (biz_type, from_at) DO UPDATE SET to_at = excluded.to_at WHERE to_at < excluded.to_at

-- Every column of a task, for moving it to history as it is.
-- fragment: all_columns
id, request_id, biz_type, merchant_no, biz_id, effect_key, serial_key, order_no, payment_no,
channel, channel_trade_no, refund_no, source, parent_id, amount, currency, created_by, created_at,
task_status, priority, retry_count, max_retry_count, attempt_no, crash_count, defer_count,
not_found_count, first_not_found_at, outcome_unknown, last_outcome, last_error_code, last_error_msg,
manual_code, conclusion, close_pending, next_execute_at, due_at, blocked_key, last_execute_at,
run_key, call_until, locked_by, locked_at, locked_until, lease_token, version, updated_at, fresh_at,
idle_us, blocked_at

-- Where a slice of ?3 rows ends: the last id of it, how many it looks at.
-- name: archive_reach
SELECT max(id), count(*)
FROM (SELECT id FROM task WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3) slice

-- name: archive_copy
INSERT INTO task_history ({all_columns})
SELECT {all_columns} FROM task
WHERE id > ?1 AND id <= ?2 AND task_status IN (?4, ?5) AND updated_at < ?3

-- name: archive_remove
DELETE FROM task
WHERE id > ?1 AND id <= ?2 AND task_status IN (?4, ?5) AND updated_at < ?3

-- name: purge_scan
SELECT id, biz_type, task_status, amount, currency, outcome_unknown, updated_at FROM task_history
WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3

-- name: purge_payloads
DELETE FROM task_payload WHERE task_id IN (SELECT id FROM task_history
    WHERE id > ?1 AND id <= ?2 AND updated_at < ?3)

-- name: purge_logs
DELETE FROM task_log WHERE task_id IN (SELECT id FROM task_history
    WHERE id > ?1 AND id <= ?2 AND updated_at < ?3)

-- name: purge_tasks
DELETE FROM task_history WHERE id > ?1 AND id <= ?2 AND updated_at < ?3

-- Spans of a queue and of the whole process in one order; they may overlap.
-- name: stops_since
SELECT from_at, to_at FROM queue_stop WHERE biz_type = ?1 AND to_at > ?2
UNION ALL SELECT from_at, to_at FROM queue_stop WHERE biz_type = '' AND to_at > ?2
ORDER BY 1

-- name: task_age
SELECT COALESCE(fresh_at, created_at), idle_us FROM task WHERE id = ?1

-- name: stops_forget
DELETE FROM queue_stop WHERE to_at < ?1

-- fragment: alert_columns
e.id, e.kind, e.subject, e.biz_type, e.task_id, e.message, e.count, e.first_at, e.last_at, e.open,
e.recovered_at, e.recovered_message, e.unplanned

-- name: alert_page
SELECT {alert_columns} FROM alert_event e WHERE e.id < ?1 ORDER BY e.id DESC LIMIT ?2

-- name: alert_page_open
SELECT {alert_columns} FROM alert_event e WHERE e.open = 1 AND e.id < ?1 ORDER BY e.id DESC LIMIT ?2

-- name: alert_page_ended
SELECT {alert_columns} FROM alert_event e WHERE e.open = 0 AND e.id < ?1 ORDER BY e.id DESC LIMIT ?2

-- name: alert_unplanned
SELECT {alert_columns} FROM alert_event e WHERE e.unplanned > 0 ORDER BY e.id LIMIT ?1

-- name: delivery_of_alert
SELECT deliverer, phase, state, attempts, next_at, code, message, created_at, sent_at
FROM alert_delivery WHERE alert_id = ?1 ORDER BY deliverer, phase

-- First tries that wait for their group come along; that an alert recovered is never told before
-- that it began. What is to wait until after ?4 was put off by a clock that was wrong: it is due.
-- name: delivery_due
SELECT {alert_columns}, d.phase, d.attempts, d.next_at, d.created_at
FROM alert_delivery d JOIN alert_event e ON e.id = d.alert_id
WHERE d.deliverer = ?1 AND d.state = 'pending' AND (d.attempts = 0 OR d.next_at <= ?2 OR d.next_at > ?4)
    AND (d.phase = 1 OR NOT EXISTS (SELECT 1 FROM alert_delivery r
        WHERE r.alert_id = d.alert_id AND r.phase = 1 AND r.deliverer = d.deliverer
            AND r.state = 'pending' AND r.attempts > 0 AND r.next_at > ?2 AND r.next_at <= ?4))
ORDER BY d.alert_id, d.phase LIMIT ?3

-- name: delivery_waiting
SELECT deliverer, COUNT(*) FROM alert_delivery WHERE state = 'pending' GROUP BY deliverer
ORDER BY deliverer

-- name: audit_insert
INSERT INTO audit (id, at, operator, action, object, reason, conclusion, order_no, before, after)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)

-- name: audit_get
SELECT action FROM audit WHERE id = ?1

-- name: audit_page
SELECT id, at, operator, action, object, reason, conclusion, order_no, before, after FROM audit
WHERE id < ?1 ORDER BY id DESC LIMIT ?2

-- name: queue_pause
INSERT INTO queue_state (biz_type, paused, reason, operator, at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (biz_type) DO UPDATE SET paused = excluded.paused, reason = excluded.reason,
    operator = excluded.operator, at = excluded.at

-- name: queue_orphan_mark
INSERT INTO queue_state (biz_type, orphan_since) VALUES (?1, ?2)
ON CONFLICT (biz_type) DO UPDATE SET orphan_since = excluded.orphan_since

-- name: queue_state_get
SELECT paused, reason, operator, at, orphan_since FROM queue_state WHERE biz_type = ?1

-- name: queue_names
SELECT biz_type FROM queue_stat UNION SELECT biz_type FROM queue_state ORDER BY 1

-- name: queue_open
SELECT biz_type FROM queue_stat WHERE task_status IN ('WAITING', 'RETRY')
GROUP BY biz_type HAVING SUM(n) > 0 ORDER BY biz_type

-- name: queue_marked
SELECT q.biz_type FROM queue_state q
WHERE q.orphan_since IS NOT NULL AND NOT EXISTS (SELECT 1 FROM queue_stat s
    WHERE s.biz_type = q.biz_type AND s.task_status IN ('WAITING', 'RETRY') AND s.n > 0)
ORDER BY q.biz_type

-- name: orphan_scan
SELECT {task_columns} FROM task t
WHERE t.biz_type = ?1 AND t.due_at IS NOT NULL AND t.crash_count < 2 LIMIT ?2

-- name: orphan_scan_suspects
SELECT {task_columns} FROM task t
WHERE t.biz_type = ?1 AND t.due_at IS NOT NULL AND t.crash_count >= 2 LIMIT ?2

-- name: token_insert
INSERT INTO api_token (id, name, role, queues, hash, created_by, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- name: token_active
SELECT id, role, queues FROM api_token WHERE name = ?1 AND revoked_at IS NULL

-- name: token_revoke
UPDATE api_token SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL

-- name: token_all
SELECT id, name, role, queues, hash, created_at, revoked_at FROM api_token ORDER BY id

-- What a list looks at before it loads a row; the order is that of struct glance in list.c.
-- fragment: glance
t.id, t.task_status, t.source, t.biz_type, t.order_no, t.payment_no, t.channel_trade_no,
t.refund_no, t.biz_id, t.last_error_code, t.manual_code, t.created_at

-- Live tasks and history in one list: a merge of two index scans. What is not finished is never in
-- history.
-- name: list_all
SELECT {glance} FROM task t WHERE t.id < ?1
UNION ALL SELECT {glance} FROM task_history t WHERE t.id < ?1
ORDER BY 1 DESC LIMIT ?2

-- name: list_live
SELECT {glance} FROM task t WHERE t.id < ?1 ORDER BY t.id DESC LIMIT ?2

-- name: list_manual
SELECT {glance} FROM task t 
WHERE t.task_status IN ('MANUAL', 'RETRY') AND t.task_status = 'MANUAL' AND t.id < ?1
ORDER BY t.id DESC LIMIT ?2

-- name: list_retry
SELECT {glance} FROM task t 
WHERE t.task_status IN ('MANUAL', 'RETRY') AND t.task_status = 'RETRY' AND t.id < ?1
ORDER BY t.id DESC LIMIT ?2

-- name: list_order_no
SELECT {glance} FROM task t WHERE t.order_no = ?3 AND t.id < ?1
UNION ALL SELECT {glance} FROM task_history t WHERE t.order_no = ?3 AND t.id < ?1
ORDER BY 1 DESC LIMIT ?2

-- name: list_payment_no
SELECT {glance} FROM task t WHERE t.payment_no = ?3 AND t.id < ?1
UNION ALL SELECT {glance} FROM task_history t WHERE t.payment_no = ?3 AND t.id < ?1
ORDER BY 1 DESC LIMIT ?2

-- name: list_channel_trade_no
SELECT {glance} FROM task t WHERE t.channel_trade_no = ?3 AND t.id < ?1
UNION ALL SELECT {glance} FROM task_history t WHERE t.channel_trade_no = ?3 AND t.id < ?1
ORDER BY 1 DESC LIMIT ?2

-- name: list_refund_no
SELECT {glance} FROM task t WHERE t.refund_no = ?3 AND t.id < ?1
UNION ALL SELECT {glance} FROM task_history t WHERE t.refund_no = ?3 AND t.id < ?1
ORDER BY 1 DESC LIMIT ?2

-- name: list_biz_id
SELECT {glance} FROM task t WHERE t.biz_id = ?3 AND t.id < ?1
UNION ALL SELECT {glance} FROM task_history t WHERE t.biz_id = ?3 AND t.id < ?1
ORDER BY 1 DESC LIMIT ?2

-- name: list_request_id
SELECT {glance} FROM request_key k JOIN task t ON t.id = k.task_id
WHERE k.request_id = ?3 AND t.id < ?1
UNION ALL SELECT {glance} FROM request_key k JOIN task_history t ON t.id = k.task_id
WHERE k.request_id = ?3 AND t.id < ?1
LIMIT ?2

-- The whole check: each gives what is wrong, as the text of one finding a row.

-- name: check_states
SELECT 'task ' || id || ' is ' || task_status || ' with fields that do not belong to it' FROM task
WHERE (task_status IN ('WAITING', 'RETRY')) <> (due_at IS NOT NULL OR blocked_key IS NOT NULL)
    OR (due_at IS NOT NULL AND blocked_key IS NOT NULL)
    OR (task_status = 'PROCESSING') <> (locked_until IS NOT NULL)
    OR (task_status <> 'PROCESSING' AND close_pending <> 0)
    OR (task_status <> 'PROCESSING' AND run_key IS NOT NULL AND call_until IS NULL)
    OR task_status = 'FAILED'
    OR (task_status = 'MANUAL' AND manual_code IS NULL)
LIMIT ?1

-- name: check_history
SELECT 'task ' || id || ' is ' || task_status || ' in history with fields that do not belong there'
FROM task_history
WHERE (task_status <> 'SUCCESS' AND task_status <> 'CLOSED') OR due_at IS NOT NULL
    OR blocked_key IS NOT NULL OR locked_until IS NOT NULL OR run_key IS NOT NULL
    OR close_pending <> 0
LIMIT ?1

-- name: check_twice
SELECT 'task ' || h.id || ' is both live and in history' FROM task_history h
JOIN task t ON t.id = h.id LIMIT ?1

-- A key outlives its task: what was purged has an id of at most purged_id.
-- name: check_request_keys
SELECT 'request_key ' || k.request_id || ' names task ' || k.task_id || ', which is not there'
FROM request_key k LEFT JOIN task t ON t.id = k.task_id LEFT JOIN task_history h ON h.id = k.task_id
WHERE t.id IS NULL AND h.id IS NULL
    AND k.task_id > (SELECT value FROM meta WHERE name = 'purged_id') LIMIT ?1

-- name: check_tasks_without_key
SELECT 'task ' || t.id || ' has no request_key'
FROM (SELECT id, request_id, manual_code FROM task
    UNION ALL SELECT id, request_id, manual_code FROM task_history) t
LEFT JOIN request_key k ON k.request_id = t.request_id
WHERE (k.request_id IS NULL OR k.submit_id <> t.id)
    AND (t.manual_code IS NULL OR t.manual_code <> 'REQUEST_CONFLICT') LIMIT ?1

-- name: check_effect_keys
SELECT 'effect_key ' || k.effect_key || ' names task ' || k.task_id || ', which does not have it'
FROM effect_key k LEFT JOIN task t ON t.id = k.task_id LEFT JOIN task_history h ON h.id = k.task_id
WHERE CASE WHEN COALESCE(t.id, h.id) IS NULL
    THEN k.task_id > (SELECT value FROM meta WHERE name = 'purged_id')
    ELSE COALESCE(t.effect_key, h.effect_key) IS NOT k.effect_key
        OR COALESCE(t.biz_type, h.biz_type) <> k.biz_type
        OR COALESCE(t.merchant_no, h.merchant_no) <> k.merchant_no END LIMIT ?1

-- name: check_blocked
SELECT 'task ' || b.id || ' is blocked by ' || b.blocked_key || ' and nothing will free it'
FROM task b
WHERE b.blocked_key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM task h WHERE h.run_key = b.blocked_key)
    AND NOT EXISTS (SELECT 1 FROM task d WHERE d.biz_type = b.biz_type
        AND d.due_at IS NOT NULL AND d.serial_key = b.blocked_key)
LIMIT ?1

-- The two halves of the amounts are summed apart, so that no sum passes 64 bits.
-- name: check_figures
SELECT biz_type, task_status, currency, sum(n), sum(unknown), sum(high), sum(low)
FROM (
    SELECT biz_type, task_status, currency, n, unknown, amount >> 32 AS high,
        amount & 4294967295 AS low FROM queue_stat
    UNION ALL
    SELECT biz_type, task_status, COALESCE(currency, ''), -1, -outcome_unknown,
        -(COALESCE(amount, 0) >> 32), -(COALESCE(amount, 0) & 4294967295) FROM task
    UNION ALL
    SELECT biz_type, task_status, COALESCE(currency, ''), -1, -outcome_unknown,
        -(COALESCE(amount, 0) >> 32), -(COALESCE(amount, 0) & 4294967295) FROM task_history
)
GROUP BY biz_type, task_status, currency
