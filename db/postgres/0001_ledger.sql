-- Credits are BIGINT, 0 to 2^53-1 (9007199254740991), so that every JSON reader can hold them.
-- Times are BIGINT microseconds since 1970-01-01 UTC. Ids are 1 to 255 bytes, compared byte for byte.
-- Texts are COLLATE "C": ranges of keys and the order of postings in a hash are those of the bytes.

-- One row per owner: the sum of its lots, the number of its entries and the hash of the last one.
CREATE TABLE balances (
  owner     TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (octet_length(owner) BETWEEN 1 AND 255),
  available BIGINT           NOT NULL CHECK (available BETWEEN 0 AND 9007199254740991),
  held      BIGINT           NOT NULL CHECK (held      BETWEEN 0 AND 9007199254740991),
  used      BIGINT           NOT NULL CHECK (used      BETWEEN 0 AND 9007199254740991),
  expired   BIGINT           NOT NULL CHECK (expired   BETWEEN 0 AND 9007199254740991),
  seq       BIGINT           NOT NULL CHECK (seq >= 0),
  head      BYTEA            NOT NULL CHECK (octet_length(head) = 32)
);

-- One row per job. It ends once; cost is what was charged and never changes. Only a job that came
-- from other books can have ended and not be settled.
CREATE TABLE jobs (
  id              TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 255),
  owner           TEXT COLLATE "C" NOT NULL REFERENCES balances (owner),
  cost            BIGINT           NOT NULL CHECK (cost BETWEEN 1 AND 9007199254740991),
  mode            TEXT COLLATE "C" NOT NULL CHECK (mode IN ('hold', 'charge')),
  status          TEXT COLLATE "C" NOT NULL CHECK (
                    status = 'pending' OR status = 'processing' OR status = 'completed'
                    OR status = 'failed' OR status = 'canceled' OR status = 'timed_out'),
  attempt         BIGINT           NOT NULL CHECK (attempt >= 0),
  submission      TEXT COLLATE "C" NOT NULL CHECK (
                    submission = 'none' OR submission = 'submitting' OR submission = 'accepted'
                    OR submission = 'rejected' OR submission = 'uncertain'
                    OR submission = 'unknown'),
  settled_cost    BIGINT           CHECK (settled_cost BETWEEN 0 AND cost),
  settled_source  TEXT COLLATE "C" CHECK (
                    settled_source = 'callback' OR settled_source = 'poll'
                    OR settled_source = 'operator' OR settled_source = 'sweep'),
  settled_attempt BIGINT           CHECK (settled_attempt BETWEEN 0 AND attempt),
  settled_at      BIGINT,
  deadline        BIGINT,
  reason          TEXT COLLATE "C" NOT NULL,
  metadata        TEXT COLLATE "C" NOT NULL CHECK (octet_length(metadata) BETWEEN 2 AND 4096),
  created_at      BIGINT           NOT NULL,
  updated_at      BIGINT           NOT NULL,
  imported        BIGINT           NOT NULL DEFAULT 0 CHECK (imported IN (0, 1)),
  CHECK (settled_cost IS NOT NULL OR status IN ('pending', 'processing') OR imported = 1),
  CHECK ((settled_cost IS NULL) = (settled_at IS NULL)),
  CHECK ((settled_cost IS NULL) = (settled_source IS NULL)),
  CHECK ((settled_cost IS NULL) = (settled_attempt IS NULL)),
  CHECK (settled_cost IS NULL OR status NOT IN ('pending', 'processing')),
  CHECK (settled_cost IS NULL OR settled_cost = 0 OR status = 'completed')
);

CREATE INDEX jobs_owner ON jobs (owner, id);
CREATE INDEX jobs_open ON jobs (deadline, id) WHERE status IN ('pending', 'processing');
CREATE INDEX jobs_unsettled ON jobs (id)
  WHERE imported = 1 AND settled_cost IS NULL AND status NOT IN ('pending', 'processing');

-- The journal: one row per movement of credits, in one hash chain per owner. Append-only.
CREATE TABLE entries (
  id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  event_key       TEXT COLLATE "C" NOT NULL UNIQUE,
  owner           TEXT COLLATE "C" NOT NULL REFERENCES balances (owner),
  seq             BIGINT           NOT NULL CHECK (seq >= 1),
  kind            TEXT COLLATE "C" NOT NULL CHECK (
                    kind = 'grant' OR kind = 'hold' OR kind = 'consume' OR kind = 'release'
                    OR kind = 'charge' OR kind = 'refund' OR kind = 'expire' OR kind = 'revoke'),
  amount          BIGINT           NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  job_id          TEXT COLLATE "C" REFERENCES jobs (id),
  available_after BIGINT           NOT NULL CHECK (available_after BETWEEN 0 AND 9007199254740991),
  held_after      BIGINT           NOT NULL CHECK (held_after      BETWEEN 0 AND 9007199254740991),
  used_after      BIGINT           NOT NULL CHECK (used_after      BETWEEN 0 AND 9007199254740991),
  expired_after   BIGINT           NOT NULL CHECK (expired_after   BETWEEN 0 AND 9007199254740991),
  reason          TEXT COLLATE "C" NOT NULL,
  metadata        TEXT COLLATE "C" NOT NULL CHECK (octet_length(metadata) BETWEEN 2 AND 4096),
  occurred_at     BIGINT           NOT NULL,
  recorded_at     BIGINT           NOT NULL,
  hash            BYTEA            NOT NULL CHECK (octet_length(hash) = 32),
  UNIQUE (owner, seq)
);

-- Credits granted or refunded together. amount is what the lot holds now, in all four buckets:
-- a refund moves credits out of the lot that paid into a new one. effective_at NULL: at once;
-- expires_at NULL: never.
CREATE TABLE lots (
  id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  owner        TEXT COLLATE "C" NOT NULL REFERENCES balances (owner),
  entry_id     TEXT COLLATE "C" NOT NULL REFERENCES entries (id),
  available    BIGINT           NOT NULL CHECK (available >= 0),
  held         BIGINT           NOT NULL CHECK (held >= 0),
  used         BIGINT           NOT NULL CHECK (used >= 0),
  expired      BIGINT           NOT NULL CHECK (expired >= 0),
  amount       BIGINT           NOT NULL CHECK (amount BETWEEN 0 AND 9007199254740991),
  priority     BIGINT           NOT NULL CHECK (priority BETWEEN 0 AND 9007199254740991),
  effective_at BIGINT,
  expires_at   BIGINT,
  CHECK (available + held + used + expired = amount),
  CHECK (effective_at IS NULL OR expires_at IS NULL OR effective_at < expires_at)
);

-- The spending order: priority, then expiry with none last, then id.
CREATE INDEX lots_spend ON lots (owner, priority, COALESCE(expires_at, 253402300800000000), id)
  WHERE available > 0;
CREATE INDEX lots_due ON lots (owner, expires_at) WHERE available > 0 AND expires_at IS NOT NULL;
CREATE INDEX lots_due_any ON lots (expires_at) WHERE available > 0 AND expires_at IS NOT NULL;
CREATE INDEX lots_scheduled ON lots (owner, effective_at) WHERE available > 0 AND effective_at IS NOT NULL;
CREATE INDEX lots_owner ON lots (owner, id);

-- Which lots an entry touched, and with how much. Append-only. What a job holds is the postings
-- of its hold entry.
CREATE TABLE postings (
  entry_id TEXT COLLATE "C" NOT NULL REFERENCES entries (id),
  lot_id   TEXT COLLATE "C" NOT NULL REFERENCES lots (id),
  amount   BIGINT           NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  PRIMARY KEY (entry_id, lot_id)
);

-- One row per submission of a job to a provider.
CREATE TABLE attempts (
  job_id      TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
  attempt     BIGINT           NOT NULL CHECK (attempt >= 1),
  provider    TEXT COLLATE "C" NOT NULL,
  upstream_id TEXT COLLATE "C",
  submission  TEXT COLLATE "C" NOT NULL CHECK (
                    submission = 'submitting' OR submission = 'accepted'
                    OR submission = 'rejected' OR submission = 'uncertain'
                    OR submission = 'unknown'),
  evidence    TEXT COLLATE "C" NOT NULL,
  operator    TEXT COLLATE "C" NOT NULL, -- who reconciled it; empty if the provider's answer resolved it
  marked_at   BIGINT           NOT NULL,
  resolved_at BIGINT,
  PRIMARY KEY (job_id, attempt)
);

CREATE UNIQUE INDEX attempts_upstream ON attempts (provider, upstream_id) WHERE upstream_id IS NOT NULL;

-- Every answer to an attempt, in the order in which they came: attempts has the last one. operator is
-- who reconciled it; empty if it is the provider's own. Append-only.
CREATE TABLE answers (
  job_id      TEXT COLLATE "C" NOT NULL,
  attempt     BIGINT           NOT NULL,
  n           BIGINT           NOT NULL CHECK (n >= 1),
  submission  TEXT COLLATE "C" NOT NULL CHECK (
                    submission = 'accepted' OR submission = 'rejected' OR submission = 'uncertain'),
  provider    TEXT COLLATE "C" NOT NULL,
  upstream_id TEXT COLLATE "C",
  evidence    TEXT COLLATE "C" NOT NULL,
  operator    TEXT COLLATE "C" NOT NULL,
  recorded_at BIGINT           NOT NULL,
  PRIMARY KEY (job_id, attempt, n),
  FOREIGN KEY (job_id, attempt) REFERENCES attempts (job_id, attempt)
);

-- What observers said, one row per distinct report and verdict; a repetition raises count.
-- attempt 0 and upstream_id '' mean that the report named none.
CREATE TABLE reports (
  job_id      TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
  attempt     BIGINT           NOT NULL CHECK (attempt >= 0),
  source      TEXT COLLATE "C" NOT NULL CHECK (
                    source = 'callback' OR source = 'poll' OR source = 'operator'
                    OR source = 'sweep'),
  outcome     TEXT COLLATE "C" NOT NULL CHECK (
                    outcome = 'completed' OR outcome = 'failed' OR outcome = 'canceled'
                    OR outcome = 'timed_out'),
  upstream_id TEXT COLLATE "C" NOT NULL,
  verdict     TEXT COLLATE "C" NOT NULL CHECK (
                    verdict = 'won' OR verdict = 'duplicate' OR verdict = 'conflict'
                    OR verdict = 'stale' OR verdict = 'refused'),
  count       BIGINT           NOT NULL CHECK (count >= 1),
  first_at    BIGINT           NOT NULL,
  last_at     BIGINT           NOT NULL,
  detail      TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (job_id, source, outcome, verdict, attempt, upstream_id)
);

-- The outbox: what another system must be told, written by the transaction that it speaks of.
-- The id says what of: settled:{job} can be there once, conflict:{job}:{n} is the n-th contradiction.
CREATE TABLE events (
  id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  type       TEXT COLLATE "C" NOT NULL CHECK (
                    type = 'job.completed' OR type = 'job.failed' OR type = 'job.canceled'
                    OR type = 'job.timed_out' OR type = 'job.conflict'),
  job_id     TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
  owner      TEXT COLLATE "C" NOT NULL,
  payload    TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL
);

-- What is written stays: the journal and the evidence refuse changes, a settled job refuses another end.
CREATE FUNCTION jobledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('entries are append-only');
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('entries are append-only');
CREATE TRIGGER postings_no_update BEFORE UPDATE ON postings
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('postings are append-only');
CREATE TRIGGER postings_no_delete BEFORE DELETE ON postings
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('postings are append-only');
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('events are append-only');
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('events are append-only');
CREATE TRIGGER lots_no_delete BEFORE DELETE ON lots
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('lots are never deleted');
CREATE TRIGGER balances_no_delete BEFORE DELETE ON balances
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('balances are never deleted');
CREATE TRIGGER jobs_no_delete BEFORE DELETE ON jobs
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('jobs are never deleted');
CREATE TRIGGER reports_no_delete BEFORE DELETE ON reports
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('reports are never deleted');
CREATE TRIGGER reports_count_only BEFORE UPDATE ON reports
  FOR EACH ROW WHEN (NEW.count <= OLD.count OR NEW.job_id <> OLD.job_id OR NEW.attempt <> OLD.attempt
    OR NEW.source <> OLD.source OR NEW.outcome <> OLD.outcome OR NEW.upstream_id <> OLD.upstream_id
    OR NEW.verdict <> OLD.verdict OR NEW.first_at <> OLD.first_at OR NEW.detail <> OLD.detail)
  EXECUTE FUNCTION jobledger_refuse('a report is only counted');
CREATE TRIGGER answers_no_update BEFORE UPDATE ON answers
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('answers are append-only');
CREATE TRIGGER answers_no_delete BEFORE DELETE ON answers
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('answers are append-only');
CREATE TRIGGER attempts_no_delete BEFORE DELETE ON attempts
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('attempts are never deleted');
CREATE TRIGGER attempts_same_job BEFORE UPDATE OF job_id, attempt, marked_at ON attempts
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('what an attempt is of never changes');
CREATE TRIGGER jobs_end_once
  BEFORE UPDATE OF status, settled_cost, settled_source, settled_attempt, settled_at ON jobs
  FOR EACH ROW WHEN (OLD.settled_cost IS NOT NULL
    OR (OLD.status NOT IN ('pending', 'processing') AND NEW.status <> OLD.status))
  EXECUTE FUNCTION jobledger_refuse('a job ends once');
CREATE TRIGGER jobs_same_terms
  BEFORE UPDATE OF id, owner, cost, mode, deadline, metadata, created_at, imported ON jobs
  FOR EACH ROW EXECUTE FUNCTION jobledger_refuse('the terms of a job never change');

-- A row trigger does not see TRUNCATE.
CREATE TRIGGER entries_no_truncate BEFORE TRUNCATE ON entries
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('entries are never deleted');
CREATE TRIGGER postings_no_truncate BEFORE TRUNCATE ON postings
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('postings are never deleted');
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('events are never deleted');
CREATE TRIGGER lots_no_truncate BEFORE TRUNCATE ON lots
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('lots are never deleted');
CREATE TRIGGER balances_no_truncate BEFORE TRUNCATE ON balances
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('balances are never deleted');
CREATE TRIGGER jobs_no_truncate BEFORE TRUNCATE ON jobs
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('jobs are never deleted');
CREATE TRIGGER reports_no_truncate BEFORE TRUNCATE ON reports
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('reports are never deleted');
CREATE TRIGGER answers_no_truncate BEFORE TRUNCATE ON answers
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('answers are never deleted');
CREATE TRIGGER attempts_no_truncate BEFORE TRUNCATE ON attempts
  FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('attempts are never deleted');
