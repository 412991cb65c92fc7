package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const (
	versionHMAC    = "v1"
	versionEd25519 = "v1a"
)

// Sign gives the three Standard Webhooks headers of a message, signed with each of the secrets, so that
// receivers may have any of them. id is the same each time that the message is sent; at is the time of
// this sending, of which the seconds count.
//
// Errors: an id that is empty, longer than 255 bytes, not visible ASCII, or has a '.', which divides the
// signed parts; a key that is no shared secret.
func Sign(secrets []Key, id string, at time.Time, body []byte) (http.Header, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, errors.New("sign a message: there is no secret")
	}
	seconds := strconv.FormatInt(at.Unix(), 10)
	signed := append([]byte(id+"."+seconds+"."), body...)
	var list []string
	for i := range secrets {
		k := &secrets[i]
		if k.public != nil {
			return nil, errors.New("sign a message: a public key cannot sign")
		}
		list = append(list, versionHMAC+","+base64.StdEncoding.EncodeToString(k.sum(signed)))
	}
	h := make(http.Header)
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds)
	h.Set(HeaderSignature, strings.Join(list, " "))
	return h, nil
}

func checkID(id string) error {
	if id == "" || len(id) > 255 || strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '.'
	}) {
		return fmt.Errorf("sign a message: the id %.40q is not 1 to 255 visible ASCII characters without '.'", id)
	}
	return nil
}
