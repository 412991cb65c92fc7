package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"

	"jobledger/db"
)

// Scope says what a token may do.
type Scope string

// The scopes. Each may do what those before it may.
const (
	ScopeRead     Scope = "read"     // look
	ScopeWrite    Scope = "write"    // grant, create, submit, report, cancel
	ScopeOperator Scope = "operator" // decide in place of the provider or the owner: reconcile, revoke
)

// Scopes lists all scopes, from the least to the most.
var Scopes = []Scope{ScopeRead, ScopeWrite, ScopeOperator}

// Allows reports whether a token with this scope may do what needs another. A scope that is not one of
// [Scopes] allows nothing.
func (s Scope) Allows(need Scope) bool {
	has, needs := slices.Index(Scopes, s), slices.Index(Scopes, need)
	return needs >= 0 && has >= needs
}

// Token is the right of a program or a person to use the server. Its secret is not kept.
type Token struct {
	ID        string `db:"id" json:"id"`
	Name      string `db:"name" json:"name"`
	Scope     Scope  `db:"scope" json:"scope"`
	CreatedAt Time   `db:"created_at" json:"created_at"`
	RevokedAt *Time  `db:"revoked_at" json:"revoked_at"` // nil while it is valid
}

const tokenColumns = `id, name, scope, created_at, revoked_at`

// NewToken is a token with its secret, which nobody can read again.
type NewToken struct {
	Token
	Secret string `json:"secret"`
}

// What a secret is: the prefix lets people and scanners see what they have found.
const (
	tokenPrefix    = "jl_"
	tokenSecretMax = 64 // bytes
)

// CreateToken makes a token. A name is used once, also after the token is revoked: it is what people
// know the token by.
//
// Errors: INVALID; NOT_ALLOWED if there is a token with the name.
func (l *Ledger) CreateToken(ctx context.Context, name string, scope Scope) (NewToken, error) {
	if err := firstError(CheckID("name", name), checkOneOf("scope", scope, Scopes...)); err != nil {
		return NewToken{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (NewToken, error) { return createToken(tx, name, scope) })
}

func createToken(tx *db.Tx, name string, scope Scope) (NewToken, error) {
	t := NewToken{
		Token:  Token{ID: newID(), Name: name, Scope: scope, CreatedAt: now(tx)},
		Secret: tokenPrefix + rand.Text(), // at least 128 bits
	}
	rows, err := tx.Exec(`
		INSERT INTO tokens (id, name, scope, hash, created_at)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (name) DO NOTHING`,
		t.ID, t.Name, t.Scope, hashSecret(t.Secret), t.CreatedAt)
	if err == nil && rows == 0 {
		err = fail(NotAllowed, "there is a token %q already: revoke it, and give the new one another name", name)
	}
	if err != nil {
		return NewToken{}, err
	}
	return t, nil
}

func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Tokens lists all tokens by name, the revoked ones too.
func (l *Ledger) Tokens(ctx context.Context) ([]Token, error) {
	return read(ctx, l, func(tx *db.Tx) ([]Token, error) {
		list := []Token{}
		err := tx.Select(&list, `SELECT `+tokenColumns+` FROM tokens ORDER BY name`)
		return list, err
	})
}

// RevokeToken ends a token at once and for ever. A token that is revoked already stays as it is.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) RevokeToken(ctx context.Context, name string) (Token, error) {
	if err := CheckID("name", name); err != nil {
		return Token{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (Token, error) { return revokeToken(tx, name) })
}

func revokeToken(tx *db.Tx, name string) (t Token, err error) {
	_, err = tx.Exec(`UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL`, now(tx), name)
	if err != nil {
		return t, err
	}
	found, err := tx.Get(&t, `SELECT `+tokenColumns+` FROM tokens WHERE name = ?`, name)
	if err == nil && !found {
		err = fail(NotFound, "there is no token %q", name)
	}
	return t, err
}

// Authenticate gives the token that a secret is of. Errors: UNAUTHENTICATED, with the same words
// whatever is wrong with the secret.
func (l *Ledger) Authenticate(ctx context.Context, secret string) (Token, error) {
	if !strings.HasPrefix(secret, tokenPrefix) || len(secret) > tokenSecretMax {
		return Token{}, noToken()
	}
	return read(ctx, l, func(tx *db.Tx) (Token, error) { return authenticate(tx, secret) })
}

// authenticate looks the hash up. What the time of the look-up tells is about the hash of a guess, from
// which no other guess can be made; the comparison tells nothing at all.
func authenticate(tx *db.Tx, secret string) (Token, error) {
	hash := hashSecret(secret)
	var row struct {
		Token
		Hash []byte `db:"hash"`
	}
	found, err := tx.Get(&row, tokenQuery, hash)
	if err != nil {
		return Token{}, err
	}
	if !found || subtle.ConstantTimeCompare(row.Hash, hash) != 1 || row.RevokedAt != nil {
		return Token{}, noToken()
	}
	return row.Token, nil
}

const tokenQuery = `SELECT ` + tokenColumns + `, hash FROM tokens WHERE hash = ?`

func noToken() error { return fail(Unauthenticated, "the token is not valid") }
