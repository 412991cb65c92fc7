package books

import (
	"database/sql"
	"encoding/json"
	"iter"

	"jobledger/ledger"
)

func (s *stage) books() ledger.Books {
	return ledger.Books{
		Owners: func(yield func(*ledger.OwnerBooks, error) bool) {
			for after := ""; ; {
				owners, err := s.owners(after)
				if err != nil {
					yield(nil, err)
					return
				}
				for _, owner := range owners {
					if o, err := s.figures(owner); !yield(o, err) || err != nil {
						return
					}
				}
				if len(owners) < ownersMax {
					return
				}
				after = owners[len(owners)-1]
			}
		},
		Strays: s.strays(),
	}
}

func (s *stage) owners(after string) (list []string, err error) {
	rows, err := s.stmt.owners.QueryContext(s.ctx, after, ownersMax)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var owner string
		if err := rows.Scan(&owner); err != nil {
			return nil, err
		}
		list = append(list, owner)
	}
	return list, rows.Err()
}

// figures gives an owner's balance or lots, and the way to the owner's jobs.
func (s *stage) figures(owner string) (*ledger.OwnerBooks, error) {
	o := &ledger.OwnerBooks{Owner: owner, Jobs: s.jobs(owner)}
	rows, err := s.stmt.figures.QueryContext(s.ctx, owner)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind int
		var at ledger.Place
		var content []byte
		if err := rows.Scan(&kind, &at.Table, &at.Line, &content); err != nil {
			return nil, err
		}
		if kinds[kind] == balanceKind {
			o.Balance = &ledger.BookBalance{Place: at}
			err = json.Unmarshal(content, o.Balance)
		} else {
			o.Lots = append(o.Lots, ledger.BookLot{Place: at})
			err = json.Unmarshal(content, &o.Lots[len(o.Lots)-1])
		}
		if err != nil {
			return nil, err
		}
	}
	return o, rows.Err()
}

// jobs runs through an owner's jobs, each with the refunds that name it.
func (s *stage) jobs(owner string) iter.Seq2[*ledger.BookJob, error] {
	return func(yield func(*ledger.BookJob, error) bool) {
		if err := s.eachJob(owner, func(j *ledger.BookJob) bool { return yield(j, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

func (s *stage) eachJob(owner string, fn func(*ledger.BookJob) bool) error {
	rows, err := s.stmt.jobs.QueryContext(s.ctx, owner)
	if err != nil {
		return err
	}
	defer rows.Close()
	var current *ledger.BookJob
	for rows.Next() {
		var at ledger.Place
		var content, refund []byte
		var part sql.NullString
		var line sql.NullInt64
		if err := rows.Scan(&at.Table, &at.Line, &content, &part, &line, &refund); err != nil {
			return err
		}
		if current == nil || current.Place != at {
			if current != nil && !fn(current) {
				return nil
			}
			current = &ledger.BookJob{Place: at}
			if err := json.Unmarshal(content, current); err != nil {
				return err
			}
		}
		if refund != nil {
			r := ledger.BookRefund{Place: ledger.Place{Table: part.String, Line: line.Int64}}
			if err := json.Unmarshal(refund, &r); err != nil {
				return err
			}
			current.Refunds = append(current.Refunds, r)
		}
	}
	if err := rows.Err(); err != nil || current == nil {
		return err
	}
	fn(current)
	return nil
}

// strays runs through the refunds whose job is not among the rows.
func (s *stage) strays() iter.Seq2[*ledger.BookRefund, error] {
	const query = `
		SELECT part, line, content FROM rows r
		WHERE kind = 3 AND owner NOT IN (SELECT owner FROM tainted)
		  AND NOT EXISTS (SELECT 1 FROM rows j WHERE j.kind = 2 AND j.key = r.job)
		ORDER BY id`
	return func(yield func(*ledger.BookRefund, error) bool) {
		rows, err := s.conn.QueryContext(s.ctx, query)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var r ledger.BookRefund
			var content []byte
			err := rows.Scan(&r.Table, &r.Line, &content)
			if err == nil {
				err = json.Unmarshal(content, &r)
			}
			if !yield(&r, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}
