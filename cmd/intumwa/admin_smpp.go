package main

import (
	"context"
	"fmt"
	"strings"

	"intumwa/accounts/keys"
	"intumwa/smppserver/binds"
)

type adminSMPPCmd struct {
	Create   adminSMPPCreateCmd   `cmd:"" help:"Create a key of kind SMPP; its password is shown once."`
	List     adminSMPPListCmd     `cmd:"" help:"List the keys, with their binds and what waits for these."`
	Set      adminSMPPSetCmd      `cmd:"" help:"Change a key's networks and limits."`
	Revoke   adminSMPPRevokeCmd   `cmd:"" help:"Revoke a key; its binds end."`
	Unbind   adminSMPPUnbindCmd   `cmd:"" help:"End binds of a key; the program may bind again."`
	Sessions adminSMPPSessionsCmd `cmd:"" help:"List the binds of all processes."`
	Trace    adminSMPPTraceCmd    `cmd:"" help:"Show the PDUs of a key's binds, with masked numbers."`
}

// smppFlags are the limits of a key; left out, they are the default or stay as they are.
type smppFlags struct {
	Sessions *int `help:"Binds at a time, over all processes, 100 at most; 4 by default." placeholder:"N"`
	Window   *int `help:"Unanswered submit_sm of a bind, 100 at most; 10 by default." placeholder:"N"`
	TPS      *int `name:"tps" help:"Segments a second, over all binds, 10,000 at most; 20 by default." placeholder:"N"`

	Alphabet string `help:"What data_coding 0 means: gsm7 (default) or latin1." enum:",gsm7,latin1" default:""`
}

func (f smppFlags) limits() (l keys.SMPPLimits, err error) {
	l.Alphabet = f.Alphabet
	for _, flag := range []struct {
		name  string
		value *int
		to    *int
	}{{"sessions", f.Sessions, &l.Sessions}, {"window", f.Window, &l.Window}, {"tps", f.TPS, &l.TPS}} {
		if flag.value == nil {
			continue
		}
		if *flag.to = *flag.value; *flag.to == 0 { // accounts would read it as left out
			return l, fmt.Errorf("--%s must be at least 1", flag.name)
		}
	}
	return l, nil
}

type adminSMPPCreateCmd struct {
	smppFlags

	Company  int64    `required:"" help:"The company that sends with it; the key belongs to its owner." placeholder:"ID"`
	Name     string   `required:"" help:"Its purpose."`
	Networks []string `required:"" aliases:"network" help:"Where it may bind from, 10 at most." placeholder:"CIDR"`
}

// do creates a key of the company's owner.
func (c *adminSMPPCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	if p := o.config.Missing("accounts.otp_key"); p != nil { // another key makes a password that never binds
		return nil, p
	}
	limits, err := c.limits()
	if err != nil {
		return nil, err
	}
	networks, err := keys.ParseNetworks(strings.Join(c.Networks, ","))
	if err != nil {
		return nil, err
	}
	company, err := o.companies().CompanyByID(ctx, c.Company)
	if err != nil {
		return nil, err
	}
	t, password, err := o.by(nil).CreateSMPPKey(ctx, company.OwnerID, c.Name, networks, limits, nil)
	return done(object{{"system_id", t.SystemID}, {"password", password}, {"token_id", t.ID}, {"company_id", company.ID},
		{"name", t.Name}, {"networks", t.Networks},
		{"sessions", t.Sessions}, {"window", t.Window}, {"tps", t.TPS}, {"alphabet", t.Alphabet}}, err)
}

// smppKey is a key as commands print it.
func smppKey(k keys.SMPPKey, more ...pair) object {
	return append(append(object{{"id", k.ID}, {"system_id", k.SystemID}, {"company_id", orNull(k.Company)},
		{"company", k.CompanyName}, {"name", k.Name}, {"networks", k.Networks},
		{"sessions", k.Sessions}, {"window", k.Window}, {"tps", k.TPS}, {"alphabet", k.Alphabet}}, more...),
		pair{"last_used_at", k.LastUsedAt}, pair{"revoked_at", k.RevokedAt})
}

type adminSMPPListCmd struct {
	listFlags

	Company int64 `help:"Only this company's." placeholder:"ID"`
}

// do lists keys, also revoked ones, without their passwords.
func (c *adminSMPPListCmd) do(ctx context.Context, o *operator) (any, error) {
	store, counts, waiting := binds.New(o.pool), map[int64]int64{}, map[int64]binds.Queue{}
	return collectByID(ctx, c.listFlags, func(ctx context.Context, after int64, limit int) (page []keys.SMPPKey,
		err error) {
		if page, err = o.keys().SMPPKeys(ctx, c.Company, after, limit); err != nil {
			return nil, err
		}
		ids := views(page, func(k keys.SMPPKey) int64 { return k.ID })
		if counts, err = store.Count(ctx, ids); err == nil {
			waiting, err = store.WaitingFor(ctx, ids)
		}
		return page, err
	}, func(k keys.SMPPKey) any {
		return smppKey(k, pair{"binds", counts[k.ID]}, pair{"waiting", waiting[k.ID].Number})
	})
}

type adminSMPPSetCmd struct {
	smppFlags

	ID       int64    `required:"" help:"The key: id of 'admin smpp list'." placeholder:"ID"`
	Networks []string `aliases:"network" help:"Where it may bind from, instead of those before." placeholder:"CIDR"`
}

// do changes a key. Its binds go on with the new limits, unless their address is not allowed any more.
func (c *adminSMPPSetCmd) do(ctx context.Context, o *operator) (any, error) {
	limits, err := c.limits()
	if err != nil {
		return nil, err
	}
	change := keys.SMPPChange{SMPPLimits: limits}
	if c.Networks != nil {
		if change.Networks, err = keys.ParseNetworks(strings.Join(c.Networks, ",")); err != nil {
			return nil, err
		}
		if len(change.Networks) == 0 { // an empty variable must not pass for a change
			return nil, fmt.Errorf("--networks: it names no network")
		}
	}
	key, err := o.by(nil).SetSMPPKey(ctx, c.ID, change)
	return done(smppKey(key), err)
}

type adminSMPPRevokeCmd struct {
	ID int64 `required:"" help:"The key: id of 'admin smpp list'." placeholder:"ID"`
}

// do revokes a key as 'admin token revoke' does, but no key of another kind.
func (c *adminSMPPRevokeCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.keys().SMPPKeyByID(ctx, c.ID); err != nil {
		return nil, err
	}
	_, err := o.by(nil).RevokeToken(ctx, c.ID, nil)
	return done(object{{"id", c.ID}, {"revoked", true}}, err)
}

type adminSMPPUnbindCmd struct {
	ID   int64 `required:"" help:"The key: id of 'admin smpp list'." placeholder:"ID"`
	Bind int64 `help:"Only this bind: id of 'admin smpp sessions'. All of the key's if not given." placeholder:"N"`
}

func (c *adminSMPPUnbindCmd) do(ctx context.Context, o *operator) (any, error) {
	n, err := o.by(nil).Unbind(ctx, 0, c.ID, c.Bind)
	return done(object{{"id", c.ID}, {"unbound", n}}, err)
}

type adminSMPPSessionsCmd struct{ listFlags }

// do lists binds with their figures, which are at most a second old.
func (c *adminSMPPSessionsCmd) do(ctx context.Context, o *operator) (any, error) {
	known := map[int64]keys.SMPPKey{}
	return collectByID(ctx, c.listFlags, func(ctx context.Context, after int64, limit int) ([]binds.Bind, error) {
		page, err := binds.New(o.pool).All(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		of, err := o.keys().SMPPKeysByID(ctx, views(page, func(b binds.Bind) int64 { return b.Account }))
		for _, k := range of {
			known[k.ID] = k
		}
		return page, err
	}, func(b binds.Bind) any {
		key := known[b.Account]
		return object{{"id", b.ID}, {"key_id", b.Account}, {"system_id", key.SystemID}, {"company_id", orNull(key.Company)},
			{"company", key.CompanyName}, {"peer", b.Peer}, {"mode", b.Mode},
			{"process", b.Process}, {"since", b.BoundAt}, {"in_flight", b.InFlight}, {"unanswered", b.Unanswered},
			{"submitted", b.Submitted}, {"refused", b.Refused}}
	})
}

type adminSMPPTraceCmd struct {
	SystemID string `required:"" help:"The key: system_id of 'admin smpp list'." placeholder:"S"`
	Seconds  int    `default:"30" help:"How long."`
	Ops      string `help:"Operators' listener of the process with the bind. Default: as configured." placeholder:"URL"`
}

// Run prints the PDUs of a key's binds in one process as JSON lines until the time is up or ctx ends.
func (c *adminSMPPTraceCmd) Run(ctx context.Context, p *program) error {
	return traced{"smpp", c.SystemID, c.Seconds, c.Ops, "smpp"}.run(ctx, p)
}
