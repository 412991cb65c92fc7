package webhook

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Key is a shared secret, or a sender's public key. It prints as its kind, never as itself.
type Key struct {
	secret []byte
	public ed25519.PublicKey
}

// String says what kind of key it is.
func (k Key) String() string {
	if k.public != nil {
		return "a public key"
	}
	return "a shared secret"
}

// GoString is String, so that no form of printing shows the secret.
func (k Key) GoString() string { return k.String() }

// The sizes of a shared secret in bytes. With fewer it can be guessed from one message.
const (
	secretMin = 24
	secretMax = 512
)

const (
	secretPrefix = "whsec_"
	publicPrefix = "whpk_"
)

// ParseKeys reads the keys of a kind from a text, as a secret file holds them: divided by space, the
// newest first. Errors never hold the text.
//
// Standard takes whsec_ and whpk_ keys; a text without a prefix is a shared secret in base64. HMAC takes
// the sender's secrets as they are, or whsec_ keys, of 24 to 512 bytes. Ed25519 takes public keys in
// hexadecimal, base64 or base64url, with whpk_ or without, or one JSON document with a key set.
func ParseKeys(kind Kind, text string) (keys []Key, err error) {
	if kind == Ed25519 && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return parseKeySet(text)
	}
	for i, word := range strings.Fields(text) {
		k, err := parseKey(kind, word)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key")
	}
	return keys, nil
}

func parseKey(kind Kind, word string) (k Key, err error) {
	if encoded, found := strings.CutPrefix(word, publicPrefix); found || kind == Ed25519 {
		k.public, err = parsePublic(encoded)
		return k, err
	}
	encoded, prefixed := strings.CutPrefix(word, secretPrefix)
	k.secret = []byte(word)
	if prefixed || kind == Standard {
		if k.secret, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return k, errors.New("is not " + secretPrefix + " and base64")
		}
	}
	if len(k.secret) < secretMin || len(k.secret) > secretMax {
		return k, fmt.Errorf("has %d bytes; it takes %d to %d", len(k.secret), secretMin, secretMax)
	}
	return k, nil
}

// parsePublic reads a public key in any of the forms in which senders publish them.
func parsePublic(encoded string) (ed25519.PublicKey, error) {
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString,
		base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString,
		base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(encoded); err == nil && len(b) == ed25519.PublicKeySize {
			return b, nil
		}
	}
	return nil, fmt.Errorf("is not a public key of %d bytes in hexadecimal or base64", ed25519.PublicKeySize)
}

// parseKeySet reads the Ed25519 keys of a JSON Web Key Set; other keys in it are passed over.
func parseKeySet(text string) (keys []Key, err error) {
	var set struct {
		Keys []struct {
			Type  string `json:"kty"`
			Curve string `json:"crv"`
			X     string `json:"x"`
		} `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return nil, errors.New("is not a key set in JSON")
	}
	for i, k := range set.Keys {
		if k.Type != "OKP" || k.Curve != "Ed25519" {
			continue
		}
		public, err := parsePublic(k.X)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys = append(keys, Key{public: public})
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no Ed25519 key")
	}
	return keys, nil
}

// NewSecret makes a shared secret of 32 random bytes, as a whsec_ text.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}
