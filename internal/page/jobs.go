package page

import (
	"net/http"

	"jobledger/ledger"
)

// pageRows is how many rows a list has on one page.
const pageRows = 50

// jobsData is a page of the list of jobs.
type jobsData struct {
	Owner    string
	Status   string
	After    string
	Statuses []ledger.Status
	Jobs     []ledger.Job
	More     string
}

func (p *Page) jobs(r *http.Request) (view, error) {
	q := r.URL.Query()
	d := jobsData{
		Owner: q.Get("owner"), Status: q.Get("status"), After: q.Get("after"), Statuses: statuses,
	}
	var err error
	d.Jobs, err = p.ledger.Jobs(r.Context(), ledger.JobFilter{
		Owner: d.Owner, Status: ledger.Status(d.Status), After: d.After, Limit: pageRows,
	})
	if err != nil {
		return view{}, err
	}
	id := func(j *ledger.Job) string { return j.ID }
	d.More = nextPage("/jobs", d.Jobs, pageRows, id, "owner", d.Owner, "status", d.Status)
	api := query("/v1/jobs", "owner", d.Owner, "status", d.Status, "after", d.After)
	return view{Title: "Jobs", Here: "jobs", API: api, Data: d}, nil
}

func (p *Page) job(r *http.Request) (view, error) {
	id := pathID(r.PathValue("job"))
	story, err := p.ledger.Explain(r.Context(), id)
	return view{Title: "Job " + id, Here: "jobs", API: apiURL("jobs/%s/explain", id), Data: story}, err
}
