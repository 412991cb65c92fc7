package ledger

import (
	"context"
	"errors"

	"jobledger/db"
)

// FileParams says how [CopyFile] copies.
type FileParams struct {
	Replace  bool                  // an existing ledger that nobody has open
	NoAudit  bool                  // SQLite's own check of the copy is made all the same
	Progress func(done, total int) // if set, is told how many pages are copied; it must be quick
}

// FileCopy is a ledger's file that was copied.
type FileCopy struct {
	SchemaVersion int
	Audited       bool  // and found clean; false if it was not asked for, or the schema is an older one
	AsOf          *Time // when its last journal entry was made; nil for an empty ledger, or if not audited
	OpenJobs      int64 // jobs that may have ended since; 0 if not audited
}

// CopyFile copies a ledger's SQLite file with all that is in it, as it is at one moment, into a new file
// that only its owner can read, and audits the copy before it gets its name. It is how a backup is made,
// and how one is brought back. from can be in use meanwhile.
//
// Errors: NOT_ALLOWED if something is at to; INCONSISTENT if the ledger does not hold together, which is
// no reason to do without a backup: NoAudit makes it all the same; INVALID for a from that is no SQLite
// ledger, or a to that cannot be made; BUSY if the disk is full or ctx ends. After an error nothing is at
// to that was not there before.
func CopyFile(ctx context.Context, from, to string, o Options, p FileParams) (FileCopy, error) {
	var c FileCopy
	err := db.CopyFile(ctx, from, to, o, db.CopyParams{
		Replace:  p.Replace,
		Progress: p.Progress,
		Check: func(path string, version int) error {
			c.SchemaVersion = version
			if p.NoAudit || version != SchemaVersion() {
				return nil
			}
			return c.audit(ctx, path, o)
		},
	})
	if err != nil {
		return FileCopy{}, wrap(err)
	}
	return c, nil
}

// audit refuses a copy that is not sound, and finds out how old it is.
func (c *FileCopy) audit(ctx context.Context, path string, o Options) (err error) {
	l, err := Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	found, err := read(ctx, l, func(tx *db.Tx) (FileCopy, error) {
		report, err := newAuditor(tx, l.Engine()).audit(AuditParams{})
		if err == nil {
			err = report.Err()
		}
		if err != nil {
			return FileCopy{}, err
		}
		found := FileCopy{SchemaVersion: c.SchemaVersion, Audited: true}
		_, err = tx.Get(&found, `
			SELECT (SELECT MAX(recorded_at) FROM entries) AS asof,
			       (SELECT COUNT(*) FROM jobs WHERE status IN ('pending', 'processing')) AS openjobs`)
		return found, err
	})
	if err == nil {
		*c = found
	}
	return err
}

// Err is INCONSISTENT, with the first violation, if the ledger does not hold together.
func (r AuditReport) Err() error {
	for _, c := range r.Checks {
		if !c.OK {
			return fail(Inconsistent, "the ledger does not hold together: %s: %v", c.Name, c.Violations[0]["problem"])
		}
	}
	return nil
}
