package dashboard

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// keepOnce keeps a secret for the page that comes next in this session, and for it alone.
func (v *visit) keepOnce(kind, text string) error {
	return v.d.rooms.Accounts.KeepOnce(v.ctx(), v.token, kind+"\n"+text)
}

// keepOnceIn is keepOnce within the transaction that makes the secret: without it nobody would ever know the secret.
func (v *visit) keepOnceIn(tx pgx.Tx, kind, text string) error {
	return v.d.rooms.Accounts.In(tx).KeepOnce(v.ctx(), v.token, kind+"\n"+text)
}

// takeOnce is that secret; empty when there is none of that kind. Whatever there was is forgotten.
func (v *visit) takeOnce(kind string) (string, error) {
	kept, err := v.d.rooms.Accounts.TakeOnce(v.ctx(), v.token)
	if err != nil {
		return "", err
	}
	is, text, _ := strings.Cut(kept, "\n")
	if is != kind {
		return "", nil
	}
	return text, nil
}
