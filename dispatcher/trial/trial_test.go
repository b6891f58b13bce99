package trial

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/messages/receipts"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/tools/carriersim"
)

// play starts a simulated carrier and returns its address.
func play(t *testing.T, o carriersim.Options) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = carriersim.New(o).Serve(ctx, listener)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return listener.Addr().String()
}

// TestTrial: what a trial learns from carriers that differ in one thing.
func TestTrial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		sim    carriersim.Options
		change func(*Options)
		learnt []string
		wrong  string // a part of the error
	}{
		{name: "as configured", sim: carriersim.Options{IDs: carriersim.IDDecimal},
			learnt: []string{"message_id_format: same"}},
		{name: "ids in hexadecimal, receipts in decimal", sim: carriersim.Options{IDs: carriersim.IDHexThenDecimal,
			FirstID: 171}, learnt: []string{"message_id_format: hex_to_decimal"}},
		{name: "ids in decimal, receipts in hexadecimal", sim: carriersim.Options{IDs: carriersim.IDDecimalThenHex,
			FirstID: 171}, learnt: []string{"message_id_format: decimal_to_hex"}},
		{name: "a name as 0/0", sim: carriersim.Options{
			Faults: carriersim.Faults{Demands: carriersim.Demands{NameSource: "0/0"}}},
			learnt: []string{"source_ton_npi: {alphanumeric: [0, 0]}", "message_id_format: same"}},
		{name: "a short code as 6/0", sim: carriersim.Options{
			Faults: carriersim.Faults{Demands: carriersim.Demands{ShortSource: "6/0"}}},
			change: func(o *Options) { o.Sender = "8080" },
			learnt: []string{"source_ton_npi: {short: [6, 0]}", "message_id_format: same"}},
		{name: "national recipients, no optional parameters, no relative time",
			sim: carriersim.Options{Faults: carriersim.Faults{
				Demands: carriersim.Demands{DestDigits: 8, NoOptional: true, NoRelative: true}}},
			learnt: []string{"dest_form: national", "user_message_reference: false", "validity_period: absolute",
				"message_id_format: same"}},
		{name: "an SMSC of 3.3", sim: carriersim.Options{Faults: carriersim.Faults{Demands: carriersim.Demands{Old33: true}}},
			change: func(o *Options) {
				o.Link.Mode, o.Link.Version, o.Profile.Validity = smpp.TransmitterReceiver, smpp.Version33, profile.ValidityAbsolute
			}, learnt: []string{"message_id_format: same"}},
		{name: "an SMSC of 3.3 as 3.4", sim: carriersim.Options{
			Faults: carriersim.Faults{Demands: carriersim.Demands{Old33: true}}}, wrong: "refused: ESME_RINVCMDID"},
		{name: "known already", change: func(o *Options) { o.Profile.IDFormat = receipts.Same }},
		{name: "bind only", change: func(o *Options) { o.To = "" }},
		{name: "password", sim: carriersim.Options{Password: "twelve-bytes"},
			wrong: "not bound: binding to ADDRESS as transceiver: smpp: bind_transceiver refused: ESME_RINVPASWD"},
		{name: "no receipt", sim: carriersim.Options{NoReceipts: true}, change: func(o *Options) { o.Wait = time.Second },
			wrong: "no receipt within 1s"},
		{name: "always refused", sim: carriersim.Options{
			Faults: carriersim.Faults{SubmitStatus: carriersim.InvalidSourceTON}},
			wrong: "the carrier refuses the message: ESME_RINVSRCTON"},
		{name: "refused for what no setting changes",
			sim:   carriersim.Options{Faults: carriersim.Faults{SubmitStatus: carriersim.SystemError}},
			wrong: "the carrier refuses the message: ESME_RSYSERR"},
		{name: "no answer", sim: carriersim.Options{Faults: carriersim.Faults{HalfOpen: true}},
			change: func(o *Options) { o.Link.BindTimeout = 200 * time.Millisecond }, wrong: "no answer to bind_transceiver"},
		{name: "several segments", change: func(o *Options) { o.Text = strings.Repeat("a", 161) }, wrong: "takes 2 segments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.sim.Seed, c.sim.NoFates = 7, true
			at := play(t, c.sim)
			o := Options{Link: smpp.Options{Name: "leo-1", Account: smpp.Account{Addresses: []string{at}, SystemID: "demo",
				Password: "demo"}},
				Profile: profile.Profile{Source: profile.Sources{Alphanumeric: profile.TONNPI{TON: 5}},
					Dest: profile.TONNPI{TON: 1, NPI: 1}},
				To: sms.Number("+25779123456"), Sender: "ACME", Text: "Amahoro", Wait: 10 * time.Second}
			if c.change != nil {
				c.change(&o)
			}
			got, err := Run(t.Context(), o)
			switch {
			case c.wrong != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), at, "ADDRESS"), c.wrong)):
				t.Errorf("%v, want %s", err, c.wrong)
			case c.wrong == "" && err != nil:
				t.Error(err)
			}
			if !slices.Equal(got.Learnt, c.learnt) {
				t.Errorf("learnt %q, want %q", got.Learnt, c.learnt)
			}
			if err == nil && (!got.Bound || (got.SMSCVersion == "0x34") == c.sim.Faults.Old33) {
				t.Errorf("%+v", got)
			}
			if err == nil && o.To != "" && (got.Receipt == nil || got.Receipt.State != "DELIVRD" ||
				got.Receipt.Means != "sent" || got.MessageID == "") {
				t.Errorf("%+v, receipt %+v", got, got.Receipt)
			}
		})
	}
}
