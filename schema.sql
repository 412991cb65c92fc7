-- The SQLite schema of jobledger, as init creates it.

CREATE TABLE schema_migrations (
  version    INTEGER NOT NULL PRIMARY KEY,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,
  applied_at INTEGER NOT NULL
);

-- Credits are INTEGER, 0 to 2^53-1 (9007199254740991), so that every JSON reader can hold them.
-- Times are INTEGER microseconds since 1970-01-01 UTC. Ids are 1 to 255 bytes, compared byte for byte.
-- Words are checked with OR: an IN of more than two would build a temporary b-tree for each row.

-- One row per owner: the sum of its lots, the number of its entries and the hash of the last one.
CREATE TABLE balances (
  owner     TEXT    NOT NULL PRIMARY KEY CHECK (octet_length(owner) BETWEEN 1 AND 255),
  available INTEGER NOT NULL CHECK (available BETWEEN 0 AND 9007199254740991),
  held      INTEGER NOT NULL CHECK (held      BETWEEN 0 AND 9007199254740991),
  used      INTEGER NOT NULL CHECK (used      BETWEEN 0 AND 9007199254740991),
  expired   INTEGER NOT NULL CHECK (expired   BETWEEN 0 AND 9007199254740991),
  seq       INTEGER NOT NULL CHECK (seq >= 0),
  head      BLOB    NOT NULL CHECK (octet_length(head) = 32)
) STRICT, WITHOUT ROWID;

-- One row per job. It ends once; cost is what was charged and never changes. Only a job that came
-- from other books can have ended and not be settled.
CREATE TABLE jobs (
  id              TEXT    NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 255),
  owner           TEXT    NOT NULL REFERENCES balances (owner),
  cost            INTEGER NOT NULL CHECK (cost BETWEEN 1 AND 9007199254740991),
  mode            TEXT    NOT NULL CHECK (mode IN ('hold', 'charge')),
  status          TEXT    NOT NULL CHECK (
                    status = 'pending' OR status = 'processing' OR status = 'completed'
                    OR status = 'failed' OR status = 'canceled' OR status = 'timed_out'),
  attempt         INTEGER NOT NULL CHECK (attempt >= 0),
  submission      TEXT    NOT NULL CHECK (
                    submission = 'none' OR submission = 'submitting' OR submission = 'accepted'
                    OR submission = 'rejected' OR submission = 'uncertain'
                    OR submission = 'unknown'),
  settled_cost    INTEGER CHECK (settled_cost BETWEEN 0 AND cost),
  settled_source  TEXT    CHECK (
                    settled_source = 'callback' OR settled_source = 'poll'
                    OR settled_source = 'operator' OR settled_source = 'sweep'),
  settled_attempt INTEGER CHECK (settled_attempt BETWEEN 0 AND attempt),
  settled_at      INTEGER,
  deadline        INTEGER,
  reason          TEXT    NOT NULL,
  metadata        TEXT    NOT NULL CHECK (octet_length(metadata) BETWEEN 2 AND 4096),
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  imported        INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1)),
  CHECK (settled_cost IS NOT NULL OR status IN ('pending', 'processing') OR imported = 1),
  CHECK ((settled_cost IS NULL) = (settled_at IS NULL)),
  CHECK ((settled_cost IS NULL) = (settled_source IS NULL)),
  CHECK ((settled_cost IS NULL) = (settled_attempt IS NULL)),
  CHECK (settled_cost IS NULL OR status NOT IN ('pending', 'processing')),
  CHECK (settled_cost IS NULL OR settled_cost = 0 OR status = 'completed')
) STRICT;

CREATE INDEX jobs_owner ON jobs (owner, id);
CREATE INDEX jobs_open ON jobs (deadline, id) WHERE status IN ('pending', 'processing');
CREATE INDEX jobs_unsettled ON jobs (id)
  WHERE imported = 1 AND settled_cost IS NULL AND status NOT IN ('pending', 'processing');

-- The journal: one row per movement of credits, in one hash chain per owner. Append-only.
CREATE TABLE entries (
  id              TEXT    NOT NULL PRIMARY KEY,
  event_key       TEXT    NOT NULL UNIQUE,
  owner           TEXT    NOT NULL REFERENCES balances (owner),
  seq             INTEGER NOT NULL CHECK (seq >= 1),
  kind            TEXT    NOT NULL CHECK (
                    kind = 'grant' OR kind = 'hold' OR kind = 'consume' OR kind = 'release'
                    OR kind = 'charge' OR kind = 'refund' OR kind = 'expire' OR kind = 'revoke'),
  amount          INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  job_id          TEXT    REFERENCES jobs (id),
  available_after INTEGER NOT NULL CHECK (available_after BETWEEN 0 AND 9007199254740991),
  held_after      INTEGER NOT NULL CHECK (held_after      BETWEEN 0 AND 9007199254740991),
  used_after      INTEGER NOT NULL CHECK (used_after      BETWEEN 0 AND 9007199254740991),
  expired_after   INTEGER NOT NULL CHECK (expired_after   BETWEEN 0 AND 9007199254740991),
  reason          TEXT    NOT NULL,
  metadata        TEXT    NOT NULL CHECK (octet_length(metadata) BETWEEN 2 AND 4096),
  occurred_at     INTEGER NOT NULL,
  recorded_at     INTEGER NOT NULL,
  hash            BLOB    NOT NULL CHECK (octet_length(hash) = 32),
  UNIQUE (owner, seq)
) STRICT;

-- Credits granted or refunded together. amount is what the lot holds now, in all four buckets:
-- a refund moves credits out of the lot that paid into a new one. effective_at NULL: at once;
-- expires_at NULL: never.
CREATE TABLE lots (
  id           TEXT    NOT NULL PRIMARY KEY,
  owner        TEXT    NOT NULL REFERENCES balances (owner),
  entry_id     TEXT    NOT NULL REFERENCES entries (id),
  available    INTEGER NOT NULL CHECK (available >= 0),
  held         INTEGER NOT NULL CHECK (held >= 0),
  used         INTEGER NOT NULL CHECK (used >= 0),
  expired      INTEGER NOT NULL CHECK (expired >= 0),
  amount       INTEGER NOT NULL CHECK (amount BETWEEN 0 AND 9007199254740991),
  priority     INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9007199254740991),
  effective_at INTEGER,
  expires_at   INTEGER,
  CHECK (available + held + used + expired = amount),
  CHECK (effective_at IS NULL OR expires_at IS NULL OR effective_at < expires_at)
) STRICT;

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
  entry_id TEXT    NOT NULL REFERENCES entries (id),
  lot_id   TEXT    NOT NULL REFERENCES lots (id),
  amount   INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
  PRIMARY KEY (entry_id, lot_id)
) STRICT, WITHOUT ROWID;

-- One row per submission of a job to a provider.
CREATE TABLE attempts (
  job_id      TEXT    NOT NULL REFERENCES jobs (id),
  attempt     INTEGER NOT NULL CHECK (attempt >= 1),
  provider    TEXT    NOT NULL,
  upstream_id TEXT,
  submission  TEXT    NOT NULL CHECK (
                    submission = 'submitting' OR submission = 'accepted'
                    OR submission = 'rejected' OR submission = 'uncertain'
                    OR submission = 'unknown'),
  evidence    TEXT    NOT NULL,
  operator    TEXT    NOT NULL, -- who reconciled it; empty if the provider's answer resolved it
  marked_at   INTEGER NOT NULL,
  resolved_at INTEGER,
  PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX attempts_upstream ON attempts (provider, upstream_id) WHERE upstream_id IS NOT NULL;

-- Every answer to an attempt, in the order in which they came: attempts has the last one. operator is
-- who reconciled it; empty if it is the provider's own. Append-only.
CREATE TABLE answers (
  job_id      TEXT    NOT NULL,
  attempt     INTEGER NOT NULL,
  n           INTEGER NOT NULL CHECK (n >= 1),
  submission  TEXT    NOT NULL CHECK (
                    submission = 'accepted' OR submission = 'rejected' OR submission = 'uncertain'),
  provider    TEXT    NOT NULL,
  upstream_id TEXT,
  evidence    TEXT    NOT NULL,
  operator    TEXT    NOT NULL,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, attempt, n),
  FOREIGN KEY (job_id, attempt) REFERENCES attempts (job_id, attempt)
) STRICT, WITHOUT ROWID;

-- What observers said, one row per distinct report and verdict; a repetition raises count.
-- attempt 0 and upstream_id '' mean that the report named none.
CREATE TABLE reports (
  job_id      TEXT    NOT NULL REFERENCES jobs (id),
  attempt     INTEGER NOT NULL CHECK (attempt >= 0),
  source      TEXT    NOT NULL CHECK (
                    source = 'callback' OR source = 'poll' OR source = 'operator'
                    OR source = 'sweep'),
  outcome     TEXT    NOT NULL CHECK (
                    outcome = 'completed' OR outcome = 'failed' OR outcome = 'canceled'
                    OR outcome = 'timed_out'),
  upstream_id TEXT    NOT NULL,
  verdict     TEXT    NOT NULL CHECK (
                    verdict = 'won' OR verdict = 'duplicate' OR verdict = 'conflict'
                    OR verdict = 'stale' OR verdict = 'refused'),
  count       INTEGER NOT NULL CHECK (count >= 1),
  first_at    INTEGER NOT NULL,
  last_at     INTEGER NOT NULL,
  detail      TEXT    NOT NULL,
  PRIMARY KEY (job_id, source, outcome, verdict, attempt, upstream_id)
) STRICT, WITHOUT ROWID;

-- The outbox: what another system must be told, written by the transaction that it speaks of.
-- The id says what of: settled:{job} can be there once, conflict:{job}:{n} is the n-th contradiction.
CREATE TABLE events (
  id         TEXT    NOT NULL PRIMARY KEY,
  type       TEXT    NOT NULL CHECK (
                    type = 'job.completed' OR type = 'job.failed' OR type = 'job.canceled'
                    OR type = 'job.timed_out' OR type = 'job.conflict'),
  job_id     TEXT    NOT NULL REFERENCES jobs (id),
  owner      TEXT    NOT NULL,
  payload    TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- What is written stays: the journal and the evidence refuse changes, a settled job refuses another end.
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER postings_no_update BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
CREATE TRIGGER postings_no_delete BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER lots_no_delete BEFORE DELETE ON lots
BEGIN SELECT RAISE(ABORT, 'lots are never deleted'); END;
CREATE TRIGGER balances_no_delete BEFORE DELETE ON balances
BEGIN SELECT RAISE(ABORT, 'balances are never deleted'); END;
CREATE TRIGGER jobs_no_delete BEFORE DELETE ON jobs
BEGIN SELECT RAISE(ABORT, 'jobs are never deleted'); END;
CREATE TRIGGER reports_no_delete BEFORE DELETE ON reports
BEGIN SELECT RAISE(ABORT, 'reports are never deleted'); END;
CREATE TRIGGER reports_count_only BEFORE UPDATE ON reports
WHEN NEW.count <= OLD.count OR NEW.job_id <> OLD.job_id OR NEW.attempt <> OLD.attempt
  OR NEW.source <> OLD.source OR NEW.outcome <> OLD.outcome OR NEW.upstream_id <> OLD.upstream_id
  OR NEW.verdict <> OLD.verdict OR NEW.first_at <> OLD.first_at OR NEW.detail <> OLD.detail
BEGIN SELECT RAISE(ABORT, 'a report is only counted'); END;
CREATE TRIGGER answers_no_update BEFORE UPDATE ON answers
BEGIN SELECT RAISE(ABORT, 'answers are append-only'); END;
CREATE TRIGGER answers_no_delete BEFORE DELETE ON answers
BEGIN SELECT RAISE(ABORT, 'answers are append-only'); END;
CREATE TRIGGER attempts_no_delete BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'attempts are never deleted'); END;
CREATE TRIGGER attempts_same_job BEFORE UPDATE OF job_id, attempt, marked_at ON attempts
BEGIN SELECT RAISE(ABORT, 'what an attempt is of never changes'); END;
CREATE TRIGGER jobs_end_once
BEFORE UPDATE OF status, settled_cost, settled_source, settled_attempt, settled_at ON jobs
WHEN OLD.settled_cost IS NOT NULL
  OR (OLD.status NOT IN ('pending', 'processing') AND NEW.status <> OLD.status)
BEGIN SELECT RAISE(ABORT, 'a job ends once'); END;
CREATE TRIGGER jobs_same_terms
BEFORE UPDATE OF id, owner, cost, mode, deadline, metadata, created_at, imported ON jobs
BEGIN SELECT RAISE(ABORT, 'the terms of a job never change'); END;

-- Who may use the server. Of the secret there is only its SHA-256.
CREATE TABLE tokens (
  id         TEXT    NOT NULL PRIMARY KEY,
  name       TEXT    NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 255),
  scope      TEXT    NOT NULL CHECK (scope = 'read' OR scope = 'write' OR scope = 'operator'),
  hash       BLOB    NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

-- Where events go. secret has one or two keys apart by a space, the newest first: all of them sign.
-- types is empty for all types, else each type between commas. Nothing is sent before paused_until.
CREATE TABLE endpoints (
  id              TEXT    NOT NULL PRIMARY KEY,
  url             TEXT    NOT NULL UNIQUE CHECK (octet_length(url) BETWEEN 1 AND 2048),
  secret          TEXT    NOT NULL,
  types           TEXT    NOT NULL,
  created_at      INTEGER NOT NULL,
  paused_until    INTEGER,
  disabled_at     INTEGER,
  disabled_reason TEXT    NOT NULL
) STRICT;

-- One event on its way to one endpoint. n is its place among the events of its job: 0 the settlement, k
-- the k-th contradiction. A sender has it while it has the lease. last_status is the last HTTP status.
CREATE TABLE deliveries (
  event_id    TEXT    NOT NULL REFERENCES events (id),
  endpoint_id TEXT    NOT NULL REFERENCES endpoints (id),
  job_id      TEXT    NOT NULL,
  n           INTEGER NOT NULL CHECK (n >= 0),
  status      TEXT    NOT NULL CHECK (status = 'pending' OR status = 'delivered' OR status = 'dead'),
  tries       INTEGER NOT NULL CHECK (tries >= 0),
  next_at     INTEGER NOT NULL,
  lease       TEXT,
  lease_until INTEGER,
  last_status INTEGER CHECK (last_status BETWEEN 100 AND 999),
  last_error  TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  done_at     INTEGER,
  PRIMARY KEY (event_id, endpoint_id),
  CHECK ((lease IS NULL) = (lease_until IS NULL)),
  CHECK (lease IS NULL OR status = 'pending'),
  CHECK ((done_at IS NULL) = (status = 'pending'))
) STRICT, WITHOUT ROWID;

-- What is due at an endpoint, what must go before it, what is on its way, and what was given up.
CREATE INDEX deliveries_due ON deliveries (endpoint_id, next_at, event_id) WHERE status = 'pending';
CREATE INDEX deliveries_order ON deliveries (endpoint_id, job_id, n) WHERE status = 'pending';
CREATE INDEX deliveries_leased ON deliveries (endpoint_id, lease) WHERE lease IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (event_id, endpoint_id) WHERE status = 'dead';
CREATE INDEX events_time ON events (created_at, id);

-- One row per open job that its provider has taken: when to ask for its status. A poller has it while it
-- has the lease.
CREATE TABLE polls (
  job_id      TEXT    NOT NULL PRIMARY KEY REFERENCES jobs (id),
  attempt     INTEGER NOT NULL CHECK (attempt >= 1),
  provider    TEXT    NOT NULL,
  next_at     INTEGER NOT NULL,
  tries       INTEGER NOT NULL CHECK (tries >= 0),
  lease       TEXT,
  lease_until INTEGER,
  last_error  TEXT    NOT NULL,
  CHECK ((lease IS NULL) = (lease_until IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX polls_due ON polls (provider, next_at, job_id);

-- An event and its deliveries are written together, whoever writes the event.
CREATE TRIGGER events_deliver AFTER INSERT ON events
BEGIN
  INSERT INTO deliveries (event_id, endpoint_id, job_id, n, status, tries, next_at, last_error, created_at)
  SELECT NEW.id, e.id, NEW.job_id,
         CASE WHEN NEW.type = 'job.conflict' -- conflict:{job}:{n}
              THEN CAST(SUBSTR(NEW.id, LENGTH(NEW.job_id) + 11) AS INTEGER) ELSE 0 END,
         'pending', 0, NEW.created_at, '', NEW.created_at
  FROM endpoints e
  WHERE e.disabled_at IS NULL AND (e.types = '' OR e.types LIKE '%,' || NEW.type || ',%');
END;

CREATE TRIGGER tokens_no_delete BEFORE DELETE ON tokens
BEGIN SELECT RAISE(ABORT, 'tokens are never deleted'); END;
CREATE TRIGGER tokens_same BEFORE UPDATE OF id, name, scope, hash, created_at ON tokens
BEGIN SELECT RAISE(ABORT, 'a token never changes'); END;
CREATE TRIGGER tokens_revoke_once BEFORE UPDATE OF revoked_at ON tokens
WHEN OLD.revoked_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a token is revoked once'); END;
CREATE TRIGGER endpoints_no_delete BEFORE DELETE ON endpoints
BEGIN SELECT RAISE(ABORT, 'endpoints are never deleted'); END;
CREATE TRIGGER endpoints_same BEFORE UPDATE OF id, url, types, created_at ON endpoints
BEGIN SELECT RAISE(ABORT, 'what an endpoint is never changes'); END;
CREATE TRIGGER deliveries_no_delete BEFORE DELETE ON deliveries
BEGIN SELECT RAISE(ABORT, 'deliveries are never deleted'); END;
CREATE TRIGGER deliveries_same BEFORE UPDATE OF event_id, endpoint_id, job_id, n, created_at ON deliveries
BEGIN SELECT RAISE(ABORT, 'what a delivery is of never changes'); END;
CREATE TRIGGER deliveries_end BEFORE UPDATE OF status, tries, done_at ON deliveries
WHEN OLD.status <> 'pending' AND (NEW.status <> 'pending' OR NEW.tries <> 0)
BEGIN SELECT RAISE(ABORT, 'a delivery that has ended only begins again'); END;
