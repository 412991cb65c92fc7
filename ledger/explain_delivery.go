package ledger

import "fmt"

// storyDeliveriesQuery gives the deliveries of a job's events; its arguments are those of jobEvents, and a
// limit.
const storyDeliveriesQuery = deliveriesQuery + `
WHERE d.event_id IN (` + jobEventsQuery + `)
ORDER BY d.n, d.created_at, d.endpoint_id
LIMIT ?`

// tellDelivery places what became of a delivery after all that made it, at the time when it ended, or
// began if it has not.
func (s *Story) tellDelivery(d *Delivery) {
	at := d.CreatedAt
	if d.DoneAt != nil {
		at = *d.DoneAt
	}
	s.step(phaseOver, int64(at), at, "delivery", "%s to %s: %s", d.Event, d.URL, d.inWords())
}

func (d *Delivery) inWords() string {
	if d.Tries == 0 {
		return fmt.Sprintf("not tried yet, and not before %s", d.NextAt)
	}
	text := fmt.Sprintf("%s after 1 try", d.Status)
	if d.Tries > 1 {
		text = fmt.Sprintf("%s after %d tries", d.Status, d.Tries)
	}
	if d.LastStatus != nil {
		text += fmt.Sprintf(", HTTP %d", *d.LastStatus)
	}
	text += because(d.LastError)
	if d.Status == DeliveryPending {
		text += fmt.Sprintf(", and again at %s", d.NextAt)
	}
	return text
}
