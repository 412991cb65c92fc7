-- The statements of one settlement of a held job with one lot, as jobledger sends them on SQLite, in their
-- order; between them, apart by lines with -- alone. Both peers that write the same rows read them from here.
SELECT MAX(version) FROM schema_migrations
--
UPDATE jobs
SET status = ?1, settled_cost = CASE WHEN ?1 = 'completed' THEN cost ELSE 0 END,
    settled_source = 'callback', settled_attempt = attempt, settled_at = ?2, reason = '', updated_at = ?2
WHERE id = ?3 AND status IN ('pending', 'processing')
  AND attempt BETWEEN 0 AND 1 AND cost >= 0
  AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.event_key = 'job-refund:' || ?3)
  AND ('' = '' OR NOT EXISTS (
        SELECT 1 FROM attempts a WHERE a.job_id = jobs.id AND a.attempt = jobs.attempt AND a.upstream_id <> ''))
RETURNING owner, cost, mode, attempt, submission, settled_cost, deadline, metadata, created_at
--
SELECT owner, available, held, used, expired, seq, head,
       (SELECT CAST(COALESCE(SUM(l.available), 0) AS BIGINT) FROM lots l
        WHERE l.owner = b.owner AND l.available > 0 AND l.expires_at <= ?2) AS lapsed,
       (SELECT CAST(COALESCE(SUM(l.available), 0) AS BIGINT) FROM lots l
        WHERE l.owner = b.owner AND l.available > 0 AND l.effective_at > ?2
          AND COALESCE(l.expires_at, 253402300800000000) > ?2) AS scheduled
FROM balances b WHERE owner = ?1
--
SELECT l.id, p.amount, l.priority, l.effective_at, l.expires_at
FROM entries e
JOIN postings p ON p.entry_id = e.id
JOIN lots l ON l.id = p.lot_id
WHERE e.event_key = 'job-hold:' || ?1
--
INSERT INTO entries (id, event_key, owner, seq, kind, amount, job_id, available_after, held_after,
                     used_after, expired_after, reason, metadata, occurred_at, recorded_at, hash)
VALUES (?1, 'job-' || ?2 || ':' || ?3, ?4, ?5, ?2, ?6, ?3, ?7, ?8, ?9, ?10, '', '{}', ?11, ?11, ?12)
ON CONFLICT (event_key) DO NOTHING
--
UPDATE lots
SET available = available + ?1, held = held + ?2, used = used + ?3, expired = expired + 0,
    amount = amount + ?1 + ?2 + ?3
WHERE id = ?4 AND owner = ?5 AND available + ?1 >= 0 AND held + ?2 >= 0 AND used + ?3 >= 0
--
INSERT INTO postings (entry_id, lot_id, amount) VALUES (?1, ?2, ?3)
--
UPDATE balances
SET available = available + ?1, held = held + ?2, used = used + ?3, expired = expired + 0,
    seq = seq + 1, head = ?4
WHERE owner = ?5 AND seq = ?6 AND available + ?1 >= 0 AND held + ?2 >= 0 AND used + ?3 >= 0
--
INSERT INTO events (id, type, job_id, owner, payload, created_at)
VALUES ('settled:' || ?1, 'job.' || ?2, ?1, ?3,
        '{"job":"' || ?1 || '","owner":"' || ?3 || '","outcome":"' || ?2 || '","cost":7,"consumed":7,' ||
        '"returned":0,"source":"callback","attempt":0,"reason":"","settled_at":"2030-01-01T00:00:00Z"}', ?4)
--
INSERT INTO reports (job_id, attempt, source, outcome, upstream_id, verdict, count, first_at, last_at, detail)
VALUES (?1, 0, 'callback', ?2, '', 'won', 1, ?3, ?3, '')
