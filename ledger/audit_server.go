package ledger

// auditDeliveries checks that what is on its way to an endpoint agrees with its event, and with itself.
func (a *auditor) auditDeliveries() error {
	err := a.query(checkDeliveries, `
		SELECT d.job_id AS job, d.event_id AS event, d.endpoint_id AS endpoint,
		       'it is of job ' || d.job_id || ' at place ' || CAST(d.n AS TEXT)
		       || ', expected what its event says, ' || v.job_id || ' and ' || v.type AS problem
		FROM deliveries d
		JOIN events v ON v.id = d.event_id
		WHERE d.job_id <> v.job_id OR d.created_at < v.created_at
		   OR v.type <> 'job.conflict' AND d.n <> 0
		   OR v.type = 'job.conflict' AND v.id <> 'conflict:' || v.job_id || ':' || CAST(d.n AS TEXT)`)
	if err != nil {
		return err
	}
	return a.query(checkDeliveries, `
		SELECT job_id AS job, event_id AS event, endpoint_id AS endpoint,
		       'status is ' || status || ' after ' || CAST(tries AS TEXT) || ' tries, and done_at, the lease or '
		       || 'last_status does not fit' AS problem
		FROM deliveries
		WHERE (status = 'pending') <> (done_at IS NULL) OR (lease IS NULL) <> (lease_until IS NULL)
		   OR lease IS NOT NULL AND (status <> 'pending' OR tries = 0)
		   OR status <> 'pending' AND tries = 0
		   OR status = 'delivered' AND (last_status IS NULL OR NOT last_status BETWEEN 200 AND 299)`)
}

// auditPolls checks that a provider is asked for exactly the open jobs that it took, and has both handles
// of.
func (a *auditor) auditPolls() error {
	err := a.query(checkPolls, `
		SELECT j.owner, j.id AS job, a.attempt,
		       'the provider took it, and nobody asks for it: expected a poll' AS problem
		FROM jobs j
		JOIN attempts a ON a.job_id = j.id AND a.attempt = j.attempt
		WHERE `+pollable+` AND NOT EXISTS (SELECT 1 FROM polls p WHERE p.job_id = j.id)`)
	if err != nil {
		return err
	}
	return a.query(checkPolls, `
		SELECT p.job_id AS job, p.attempt,
		       'attempt ' || CAST(p.attempt AS TEXT) || ' is asked for at provider ' || p.provider
		       || ': expected an open job that it took at that attempt, and a whole lease' AS problem
		FROM polls p
		WHERE (p.lease IS NULL) <> (p.lease_until IS NULL) OR NOT EXISTS (
		  SELECT 1 FROM jobs j JOIN attempts a ON a.job_id = j.id AND a.attempt = j.attempt
		  WHERE j.id = p.job_id AND j.attempt = p.attempt AND a.provider = p.provider AND `+pollable+`)`)
}
