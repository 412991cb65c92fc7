package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, s)
	if *t = At(at); err == nil && (*t < 0 || *t > timeMax || t.String() != s) {
		err = fmt.Errorf("%q is not a time as the ledger writes it", shorten(s))
	}
	return err
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Hash) UnmarshalJSON(text []byte) (err error) {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*h, err = hex.DecodeString(s)
	if err == nil && len(*h) != sha256.Size {
		err = errors.New("a hash has 64 digits")
	}
	return err
}

// UnmarshalJSON keeps the object as it is.
func (j *JSON) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return errors.New("it is not a JSON object")
	}
	*j = JSON(text)
	return nil
}
