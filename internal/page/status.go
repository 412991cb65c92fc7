package page

import (
	"net/http"
	"slices"
	"time"

	"jobledger/ledger"
)

const (
	ownersShown = 20
	rowsShown   = 10                 // of each other list on the first page
	soon        = 7 * 24 * time.Hour // lots that lapse within are about to
)

// statusData is the first page: what is read for it is bounded, what is counted is in watched.
type statusData struct {
	watched
	Now      ledger.Time
	Engine   string
	Owners   []ledger.Balance
	More     string // where the owners after these are; empty: there are none
	Expiring []ledger.Lot
	Dead     []ledger.Delivery
	Jobs     []statusCount
}

// statusCount is how many jobs are in a status.
type statusCount struct {
	Status ledger.Status
	N      int64
	Bar    []barPart
}

// statuses lists all statuses of jobs, in the order of a job's life.
var statuses = func() []ledger.Status {
	all := []ledger.Status{ledger.Pending, ledger.Processing}
	for _, o := range ledger.Outcomes {
		all = append(all, ledger.Status(o))
	}
	return all
}()

func (p *Page) status(r *http.Request) (view, error) {
	ctx := r.Context()
	d := statusData{watched: p.watch.known(), Now: ledger.At(time.Now()), Engine: p.ledger.Engine()}
	var err error
	if d.Owners, err = p.ledger.Balances(ctx, "", ownersShown); err != nil {
		return view{}, err
	}
	d.More = nextPage("/owners", d.Owners, ownersShown, func(b *ledger.Balance) string { return b.Owner })
	if d.Expiring, err = p.ledger.ExpiringLots(ctx, soon, rowsShown); err != nil {
		return view{}, err
	}
	dead := ledger.DeliveryFilter{Status: ledger.DeliveryDead, Limit: rowsShown}
	if d.Dead, err = p.ledger.Deliveries(ctx, dead); err != nil {
		return view{}, err
	}
	if d.Survey != nil {
		d.Jobs = countJobs(d.Survey.Jobs)
	}
	return view{Title: "Status", Here: "status", Data: d}, nil
}

// countJobs gives a bar for each status, each as long as its part of the largest.
func countJobs(n map[ledger.Status]int64) (list []statusCount) {
	var top int64
	for _, s := range statuses {
		top = max(top, n[s])
	}
	for _, s := range statuses {
		list = append(list, statusCount{s, n[s], bar([]string{string(s), "rest"}, []int64{n[s], top - n[s]})})
	}
	return list
}

// nextPage is the address of the page after a full one.
func nextPage[T any](path string, list []T, full int, id func(*T) string, also ...string) string {
	if len(list) < full {
		return ""
	}
	return query(path, append(also, "after", id(&list[len(list)-1]))...)
}

// auditData is what the last audit found, the broken checks first.
type auditData struct {
	watched
	Checks []ledger.AuditCheck
}

func (p *Page) lastAudit(*http.Request) (view, error) {
	d := auditData{watched: p.watch.known()}
	if d.Audit != nil {
		d.Checks = slices.Clone(d.Audit.Report.Checks)
		slices.SortStableFunc(d.Checks, func(a, b ledger.AuditCheck) int {
			switch {
			case a.OK == b.OK:
				return 0
			case b.OK:
				return -1
			}
			return 1
		})
	}
	return view{Title: "Audit", Here: "status", API: apiURL("audit"), Data: d}, nil
}
