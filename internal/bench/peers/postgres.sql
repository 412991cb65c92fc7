-- One settlement as a stored function, over the tables that jobledger init made, and 100 owners with open
-- jobs for it: the same rows are read, locked and written, in one round trip.
INSERT INTO balances
SELECT 'owner-' || o, 0, 7 * (:jobs / 100), 0, 0, 1 + :jobs / 100, decode(repeat('00', 32), 'hex')
FROM generate_series(0, 99) o;
INSERT INTO jobs (id, owner, cost, mode, status, attempt, submission, reason, metadata, created_at, updated_at)
SELECT 'job-' || j, 'owner-' || j % 100, 7, 'hold', 'pending', 0, 'none', '', '{}', 1, 1
FROM generate_series(0, :jobs - 1) j;
INSERT INTO entries
SELECT 'grant-' || owner, 'grant:' || owner, owner, 1, 'grant', held, NULL, held, 0, 0, 0, '', '{}', 1, 1, head
FROM balances;
INSERT INTO lots
SELECT 'lot-' || owner, owner, 'grant-' || owner, 0, held, 0, 0, held, 0, NULL, NULL FROM balances;
INSERT INTO postings SELECT 'grant-' || owner, 'lot-' || owner, held FROM balances;
INSERT INTO entries
SELECT 'hold-' || j, 'job-hold:job-' || j, 'owner-' || j % 100, 2 + j / 100, 'hold', 7, 'job-' || j, 0, 7, 0, 0, '',
       '{}', 1, 1, decode(repeat('00', 32), 'hex')
FROM generate_series(0, :jobs - 1) j;
INSERT INTO postings SELECT 'hold-' || j, 'lot-owner-' || j % 100, 7 FROM generate_series(0, :jobs - 1) j;
CREATE SEQUENCE next_job MINVALUE 0;

CREATE FUNCTION settle(n BIGINT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  job TEXT := 'job-' || n;
  ended TEXT := CASE n % 2 WHEN 1 THEN 'failed' ELSE 'completed' END;
  kind TEXT := CASE n % 2 WHEN 1 THEN 'release' ELSE 'consume' END;
  j RECORD; b RECORD; p RECORD;
  t BIGINT := (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT;
  entry TEXT := gen_random_uuid()::TEXT;
  back BIGINT; kept BIGINT; link BYTEA;
BEGIN
  UPDATE jobs
  SET status = ended, settled_cost = CASE ended WHEN 'completed' THEN cost ELSE 0 END,
      settled_source = 'callback', settled_attempt = attempt, settled_at = t, updated_at = t
  WHERE id = job AND status IN ('pending', 'processing')
    AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.event_key = 'job-refund:' || job)
  RETURNING owner, cost INTO j;
  IF NOT FOUND THEN RETURN 'lost'; END IF;
  SELECT * INTO b FROM balances WHERE owner = j.owner FOR UPDATE;
  SELECT l.id, q.amount INTO p
  FROM entries e JOIN postings q ON q.entry_id = e.id JOIN lots l ON l.id = q.lot_id
  WHERE e.event_key = 'job-hold:' || job;
  back := p.amount * (n % 2);
  kept := p.amount - back;
  link := sha256(b.head || convert_to(entry || job || kind || p.amount, 'UTF8'));
  INSERT INTO entries (id, event_key, owner, seq, kind, amount, job_id, available_after, held_after, used_after,
                       expired_after, reason, metadata, occurred_at, recorded_at, hash)
  VALUES (entry, 'job-' || kind || ':' || job, j.owner, b.seq + 1, kind, p.amount, job, b.available + back,
          b.held - p.amount, b.used + kept, b.expired, '', '{}', t, t, link);
  UPDATE lots SET available = available + back, held = held - p.amount, used = used + kept
  WHERE id = p.id AND owner = j.owner AND held >= p.amount;
  INSERT INTO postings (entry_id, lot_id, amount) VALUES (entry, p.id, p.amount);
  UPDATE balances
  SET available = available + back, held = held - p.amount, used = used + kept, seq = seq + 1, head = link
  WHERE owner = j.owner AND seq = b.seq;
  INSERT INTO events (id, type, job_id, owner, payload, created_at)
  VALUES ('settled:' || job, 'job.' || ended, job, j.owner,
          json_build_object('job', job, 'owner', j.owner, 'outcome', ended, 'cost', j.cost, 'consumed', kept,
                            'returned', back, 'source', 'callback', 'attempt', 0, 'reason', '', 'settled_at', t), t);
  INSERT INTO reports (job_id, attempt, source, outcome, upstream_id, verdict, count, first_at, last_at, detail)
  VALUES (job, 0, 'callback', ended, '', 'won', 1, t, t, '');
  RETURN 'won';
END $$;
