-- What a server needs beside the books: whom it serves, whom it tells, whom it asks.

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

INSERT INTO polls (job_id, attempt, provider, next_at, tries, last_error)
SELECT j.id, j.attempt, a.provider, j.updated_at, 0, ''
FROM jobs j
JOIN attempts a ON a.job_id = j.id AND a.attempt = j.attempt
WHERE j.status IN ('pending', 'processing') AND j.submission = 'accepted'
  AND a.provider <> '' AND a.upstream_id IS NOT NULL;

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
