package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/ledger"
)

// bound gives, as text, what a document was found to be about.
func (b *workbench) bound(h ledger.Handles) string {
	b.Helper()
	found, err := b.Bind(b.Context(), h)
	if err != nil {
		return string(ledger.CodeOf(err))
	}
	return fmt.Sprint(found.Job, " ", found.Attempt)
}

// B101: a document is about an attempt of the provider that signed it, or about none; B46: one that comes
// before the acceptance was recorded is bound by our own id, or asked for again, and never dropped.
func TestB101Bind(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.submitted("known", "acme", "u1")
		b.submitted("other", "rival", "u1")
		b.submitted("twice", "acme", "")
		b.rejected("rejected", "twice", 1, "later", true)
		b.mark("twice", "acme", 2)
		b.accepted("accepted", "twice", 2, "u2")
		b.submitted("changed", "acme", "")
		b.rejected("rejected", "changed", 1, "never", true)
		b.mark("changed", "rival", 2)
		b.accepted("accepted", "changed", 2, "u3")
		b.pending("fresh")
		for _, c := range []struct {
			want, provider, upstream, job string
			attempt                       int64
		}{
			{"known 1", "acme", "u1", "", 0},
			{"known 1", "acme", "u1", "known", 1},
			{"known 1", "acme", "u1", "", 1},
			{"known 1", "acme", "", "known", 0},
			{"known 1", "acme", "u9", "known", 0}, // the settlement says that it is stale
			{"FORBIDDEN", "acme", "u1", "other", 0},
			{"FORBIDDEN", "acme", "u1", "nobody", 0},
			{"FORBIDDEN", "acme", "u1", "known", 2},
			{"FORBIDDEN", "acme", "", "other", 0},
			{"FORBIDDEN", "acme", "", "other", 1},
			{"FORBIDDEN", "acme", "u9", "other", 0},
			{"other 1", "rival", "u1", "", 0},
			{"NOT_FOUND", "rival", "u2", "", 0},
			{"INVALID", "rival", "u1 ", "", 0},
			{"twice 2", "acme", "u2", "", 0},
			{"twice 1", "acme", "", "twice", 1},
			{"twice 0", "acme", "", "twice", 0},
			{"NOT_FOUND", "acme", "", "twice", 3},
			{"changed 2", "rival", "", "changed", 2},
			{"changed 1", "acme", "", "changed", 1},
			{"FORBIDDEN", "acme", "", "changed", 2},
			{"changed 0", "acme", "", "changed", 0},
			{"FORBIDDEN", "third", "", "changed", 0},
			{"NOT_FOUND", "acme", "", "fresh", 0},
			{"NOT_FOUND", "acme", "", "fresh", 1},
			{"NOT_FOUND", "acme", "", "nobody", 0},
			{"NOT_FOUND", "acme", "u9", "", 0},
			{"INVALID", "acme", "", "", 0},
			{"INVALID", "", "u1", "", 0},
			{"INVALID", "acme", "", "a\n", 0},
		} {
			h := ledger.Handles{Provider: c.provider, UpstreamID: c.upstream, Job: c.job, Attempt: c.attempt}
			if got := b.bound(h); got != c.want {
				b.Errorf("%+v: got %s, want %s", h, got, c.want)
			}
		}
	})
}

// submitted creates a job, marks its first attempt and, if there is an upstream id, records it.
func (b *workbench) submitted(job, provider, upstream string) {
	b.Helper()
	b.pending(job)
	b.mark(job, provider, 1)
	if upstream != "" {
		b.accepted("accepted", job, 1, upstream)
	}
}

// B46: while a submission of the provider has no answer, an id that is not on file may be its.
func TestB46BindBeforeTheAnswer(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		early := ledger.Handles{Provider: "acme", UpstreamID: "u1"}
		foreign := ledger.Handles{Provider: "other", UpstreamID: "u1"}
		b.submitted("j", "acme", "")
		is := func(state, want string) {
			b.Helper()
			if got := b.bound(early); got != want {
				b.Errorf("%s: got %s, want %s", state, got, want)
			}
			if got := b.bound(foreign); got != "NOT_FOUND" {
				b.Errorf("%s, another provider: got %s", state, got)
			}
		}
		is("submitting", "BUSY")
		b.uncertain("uncertain", "j", 1, "timeout")
		is("uncertain", "BUSY")
		early.Job = "j"
		is("with our id", "j 1")
		early.Job = ""
		b.accepted("accepted", "j", 1, "u1")
		is("accepted", "j 1")
		early.UpstreamID = "u2"
		is("another id", "NOT_FOUND")
		b.submitted("k", "acme", "")
		is("another submission", "BUSY")
		b.at(24 * time.Hour)
		is("a day later", "BUSY")
		b.at(24*time.Hour + time.Microsecond)
		is("after that", "NOT_FOUND")
		b.submitted("l", "acme", "")
		is("a new submission", "BUSY")
		b.accepted("accepted", "l", 1, "u3")
		b.rejected("rejected", "k", 1, "no", true)
		is("rejected", "NOT_FOUND")
	})
}
