package operations

import (
	"context"
	"net/netip"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/smppserver/binds"
	"intumwa/sms"
)

// CreateSMPPKey creates a key of kind SMPP for a user, as [keys.Store.CreateSMPPKey]. keep gets its system_id and its
// password, separated by a space.
func (a Actor) CreateSMPPKey(ctx context.Context, user int64, name string, networks []netip.Prefix,
	limits keys.SMPPLimits, keep Keep) (t keys.Token, password string, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		u, err := in.people().UserByID(ctx, user)
		if err != nil {
			return act{}, err
		}
		if t, password, err = in.keys().CreateSMPPKey(ctx, u.ID, name, networks, limits); err == nil {
			err = keep.keep(in.Tx, t.SystemID+" "+password)
		}
		return on("token.create", "token", t.ID, u.Company, nil, t.Recorded()), err
	})
	return t, password, err
}

// SetSMPPKey changes the networks and limits of a key of kind SMPP. Its binds have the new limits within a second;
// binds from an address that is no longer allowed end.
func (a Actor) SetSMPPKey(ctx context.Context, id int64, change keys.SMPPChange) (is keys.SMPPKey, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := in.keys().SMPPKeyByID(ctx, id)
		if err == nil {
			is, err = in.keys().SetSMPPKey(ctx, id, change)
		}
		return on("token.set", "token", id, was.Company, was.Recorded(), is.Recorded()), err
	})
	return is, err
}

// Unbind ends a bind of a key of kind SMPP, or with bind 0 all its binds, and returns how many. The programs may bind
// again. [accounts.ErrNotFound] for the key of another company, and for any other key. company 0 is any company.
func (a Actor) Unbind(ctx context.Context, company sms.CompanyID, id, bind int64) (n int64, err error) {
	err = a.do(ctx, locks, func(in within) (done act, err error) {
		key, err := in.keys().SMPPKeyByID(ctx, id)
		if err == nil && company != 0 && key.Company != int64(company) {
			err = accounts.ErrNotFound
		}
		if err != nil {
			return act{}, err
		}
		if n, err = binds.Unbind(ctx, in.Tx, id, bind); n > 0 {
			done = on("smpp.unbind", "token", id, key.Company, nil, fields{"system_id": key.SystemID, "binds": n})
		}
		return done, err
	})
	return n, err
}
