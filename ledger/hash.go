package ledger

import (
	"crypto/sha256"
	"encoding/binary"
)

// chainStart is what the hash of an owner's first entry continues from.
var chainStart = make(Hash, sha256.Size)

// digest is the hash of an entry: SHA-256 over the hash of the owner's previous entry and every
// field of this one, its postings, the terms of the lots that it issues and, for the entry that
// pays for a job, the terms of the job. A changed bit in any of them breaks the owner's chain.
//
// It finds accidents. Whoever can write to the file can also recompute the chain.
func digest(previous Hash, e *Entry, issued []Lot, job *Job) Hash {
	b := make(encoding, 0, 512)
	b.text("jobledger entry 1")
	b.text(string(previous))
	b.text(e.ID)
	b.text(e.EventKey)
	b.text(e.Owner)
	b.number(e.Seq)
	b.text(string(e.Kind))
	b.number(e.Amount)
	b.optionalText(e.Job)
	b.number(e.AvailableAfter)
	b.number(e.HeldAfter)
	b.number(e.UsedAfter)
	b.number(e.ExpiredAfter)
	b.text(e.Reason)
	b.text(string(e.Metadata))
	b.number(int64(e.OccurredAt))
	b.number(int64(e.RecordedAt))
	b.number(int64(len(e.Postings)))
	for _, p := range e.Postings {
		b.text(p.Lot)
		b.number(p.Amount)
	}
	b.number(int64(len(issued)))
	for i := range issued {
		b.text(issued[i].ID)
		b.number(issued[i].Priority)
		b.optionalTime(issued[i].EffectiveAt)
		b.optionalTime(issued[i].ExpiresAt)
	}
	if job != nil && (e.Kind == KindHold || e.Kind == KindCharge) {
		b.number(job.Cost)
		b.optionalTime(job.Deadline)
		b.text(string(job.Metadata))
		b.number(int64(job.CreatedAt))
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// encoding writes values so that different values never give the same bytes: texts carry their
// length, numbers have a fixed one, optional values say whether they are there.
type encoding []byte

func (b *encoding) number(n int64) { *b = binary.BigEndian.AppendUint64(*b, uint64(n)) }

func (b *encoding) text(s string) {
	b.number(int64(len(s)))
	*b = append(*b, s...)
}

func (b *encoding) optionalText(s *string) {
	if s == nil {
		*b = append(*b, 0)
		return
	}
	*b = append(*b, 1)
	b.text(*s)
}

func (b *encoding) optionalTime(t *Time) {
	if t == nil {
		*b = append(*b, 0)
		return
	}
	*b = append(*b, 1)
	b.number(int64(*t))
}
