package smppserver_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts/keys"
	"intumwa/dispatcher/settling"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
	"intumwa/smpp"
	"intumwa/smppserver"
	"intumwa/smppserver/binds"
	"intumwa/smppserver/statuses"
	"intumwa/sms"
	"intumwa/webhooks"
)

// TestSubmitAndReceipt: a message is charged before its answer. Its id is the same in the answer, in the receipt's text
// and in receipted_message_id, also when the receipt comes on a later bind at another process.
func TestSubmitAndReceipt(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	first := w.start()
	c := w.bound(first, nil)
	r := c.submit(func(m *smpp.Submit) {
		m.TLVs = []smpp.TLV{{Tag: smpp.TagUserMessageReference, Value: []byte{1, 2}},
			{Tag: 0x020A, Value: []byte{0x1F, 0x90}}}
	})
	if r.Outcome != smpp.Accepted || len(r.MessageID) != 26 {
		t.Fatalf("%+v", r)
	}
	if n := w.count(`SELECT credits FROM balances`); n != 9 {
		t.Errorf("%d credits", n)
	}
	w.finish(sms.Failed, "UNDELIV 034")
	w.until("a receipt", func() bool { return len(c.deliveries()) == 1 })
	check := func(c *client, id string) {
		t.Helper()
		d := c.deliveries()[0]
		tlv, _ := d.TLV(smpp.TagReceiptedMessageID)
		if d.Receipt == nil || d.Receipt.ID != id || string(tlv) != id+"\x00" ||
			!strings.HasPrefix(string(d.ShortMessage), "id:"+id+" ") || d.Receipt.State != "UNDELIV" ||
			d.Receipt.Error != "034" {
			t.Errorf("receipt %+v %q, want id %s", d.Receipt, d.ShortMessage, id)
		}
	}
	check(c, r.MessageID)
	port, _ := c.deliveries()[0].TLV(0x020A)
	if reference, _ := c.deliveries()[0].TLV(smpp.TagUserMessageReference); string(reference)+
		string(port) != "\x01\x02\x1f\x90" {
		t.Errorf("the receipt repeats %x and %x", reference, port)
	}
	w.until("its row is gone", func() bool { return w.count(`SELECT count(*) FROM smpp_deliveries`) == 0 })

	r = c.submit(nil)
	first.stop()
	w.finish(sms.Failed, "UNDELIV 034")
	second := w.start()
	later := w.bound(second, nil)
	w.until("the receipt at another process", func() bool { return len(later.deliveries()) == 1 })
	check(later, r.MessageID)
}

// TestRefusals: each reason has its status, and no refused message is charged.
func TestRefusals(t *testing.T) {
	w := newBank(t, 1, keys.SMPPLimits{})
	p := w.start()
	c := w.bound(p, nil)
	for _, try := range []struct {
		name   string
		before string // SQL
		change func(*smpp.Submit)
		want   smpp.Status
	}{
		{"an unknown sender", "", func(m *smpp.Submit) { m.Source = "OTHER" }, smpp.StatusInvSrcAddr},
		{"no sender", "", func(m *smpp.Submit) { m.Source = "" }, smpp.StatusInvSrcAddr},
		{"a fixed line", "", func(m *smpp.Submit) { m.Dest = "25722123456" }, smpp.StatusInvDstAddr},
		{"a foreign number", "", func(m *smpp.Submit) { m.Dest = "33612345678" }, smpp.StatusInvDstAddr},
		{"no text", "", func(m *smpp.Submit) { m.ShortMessage = nil }, smpp.StatusInvMsgLen},
		{"too long a part", "", func(m *smpp.Submit) {
			m.ESMClass, m.ShortMessage = 0x40, append([]byte{5, 0, 3, 1, 2, 1}, strings.Repeat("x", 154)...)
		}, smpp.StatusInvMsgLen},
		{"more than is left", "", func(m *smpp.Submit) { m.ShortMessage = []byte(strings.Repeat("x", 161)) },
			statuses.NoCredits},
		{"a sender that the carrier does not know", `INSERT INTO sender_carriers (sender_id, company_id, carrier, state)
			SELECT id, company_id, 'leo', 'sent' FROM senders`, nil, statuses.NotAtCarrier},
		{"one that it knows", `UPDATE sender_carriers SET state = 'approved'`,
			func(m *smpp.Submit) { m.ShortMessage = []byte(strings.Repeat("x", 161)) }, statuses.NoCredits},
		{"a company that is not verified", `UPDATE companies SET verified = false`, nil, statuses.NotVerified},
		{"a company that is not approved", `UPDATE companies SET approved = false`, nil, statuses.NotApproved},
	} {
		if try.before != "" {
			w.exec(try.before)
			p.holders.ForgetCompany("1") // as the notice does
		}
		if r := c.submit(try.change); r.Outcome != smpp.Rejected || r.Status != try.want {
			t.Errorf("%s: %v, want %v", try.name, r.Status, try.want)
		}
	}
	if n := w.count(`SELECT credits FROM balances`); n != 1 {
		t.Errorf("%d credits are left, want 1", n)
	}
}

// TestSandbox: the test sender's messages to sandbox numbers cost nothing, need no approval and get the receipts of
// their fates. Other senders have no sandbox, and the test sender no other numbers.
func TestSandbox(t *testing.T) {
	w := newBank(t, 1, keys.SMPPLimits{})
	w.exec(`UPDATE companies SET approved = false, verified = false`)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { _ = settling.NewSandbox(w.pool, webhooks.New(w.pool, webhooks.Options{}), nil, nil).Run(ctx) })
	t.Cleanup(func() { cancel(); working.Wait() })
	c := w.bound(w.start(), nil)
	submit := func(source, dest string) smpp.Result {
		return c.submit(func(m *smpp.Submit) { m.Source, m.Dest = source, dest })
	}
	want := map[string]string{"25701000001": "DELIVRD 000", "25701000002": "UNDELIV 001", "01000003": "REJECTD 000"}
	ids := map[string]string{}
	for number := range want {
		r := submit("TEST", number)
		if r.Outcome != smpp.Accepted {
			t.Fatalf("%s: %+v", number, r)
		}
		ids[r.MessageID] = number
	}
	w.until("three receipts", func() bool { return len(c.deliveries()) == 3 })
	for _, d := range c.deliveries() {
		if number := ids[d.Receipt.ID]; d.Receipt.State+" "+d.Receipt.Error != want[number] {
			t.Errorf("%s: %+v", number, d.Receipt)
		}
	}
	for _, wrong := range []struct {
		source, dest string
		want         smpp.Status
	}{{"ACME", "25701000001", smpp.StatusInvDstAddr}, {"TEST", "25779123456", smpp.StatusInvSrcAddr},
		{"TEST", "25701000006", smpp.StatusInvDstAddr}} {
		if r := submit(wrong.source, wrong.dest); r.Status != wrong.want {
			t.Errorf("%+v: %v", wrong, r.Status)
		}
	}
	if n := w.count(`SELECT credits FROM balances`) + w.count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("credits and waiting messages: %d, want 1", n)
	}
}

// TestBinds: a wrong password and an unknown system_id are refused alike; so is an address of another network, and the
// bind after the last one that a key may have. The others live.
func TestBinds(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{Sessions: 2})
	p := w.start()
	refused := func(name string, want smpp.Status, change func(*smpp.Options)) {
		t.Helper()
		c := w.client(p, change)
		w.until(name, func() bool { return strings.Contains(c.Snapshot().LastError, want.String()) })
	}
	refused("a wrong password", smpp.StatusInvPassword, func(o *smpp.Options) { o.Password = "x" })
	refused("an unknown system_id", smpp.StatusInvPassword, func(o *smpp.Options) { o.SystemID = "nobody" })
	one, two := w.bound(p, nil), w.bound(w.start(), func(o *smpp.Options) { o.Mode = smpp.Receiver })
	refused("a third bind", smpp.StatusAlreadyBound, nil)
	if r := one.submit(nil); r.Outcome != smpp.Accepted {
		t.Errorf("the first bind: %+v", r)
	}
	w.finish(sms.Sent, "")
	w.until("a receipt", func() bool { return len(one.deliveries())+len(two.deliveries()) == 1 })
	if _, err := w.keys.SetSMPPKey(t.Context(), w.key.ID,
		keys.SMPPChange{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}); err != nil {
		t.Fatal(err)
	}
	p.server.Changed("")
	w.until("the bind ends", func() bool { return one.Snapshot().State != smpp.Bound })
	refused("another network", smpp.StatusBindFailed, nil)
}

// TestWrongLogins: exactly as many wrong logins of an address are looked at as are allowed, however many come at once.
// Right ones do not count, and after the wrong ones they are refused too.
func TestWrongLogins(t *testing.T) {
	w := newBank(t, 0, keys.SMPPLimits{Sessions: 100})
	w.deps = func(r *smppserver.Deps) {
		rdb, prefix := testenv.Redis(t)
		r.Failures = throttle.New(rdb, throttle.Options{Prefix: prefix, Limit: 20, Window: time.Minute,
			Timeout: 5 * time.Second})
	}
	p := w.start()
	try := func(n int, password string) map[string]int {
		var mu sync.Mutex
		var tries sync.WaitGroup
		got := map[string]int{}
		for range n {
			tries.Go(func() {
				status, _, _ := strings.Cut(w.connect(p).ask(bindAs(0x02, w.key.SystemID, password, 0x34)), " ")
				mu.Lock()
				defer mu.Unlock()
				got[status]++
			})
		}
		tries.Wait()
		return got
	}
	for _, c := range []struct {
		tries    int
		password string
		want     map[string]int
	}{{25, w.password, map[string]int{"0": 25}}, {30, "wrong", map[string]int{"14": 20, "88": 10}},
		{1, w.password, map[string]int{"88": 1}}} {
		if got := try(c.tries, c.password); !maps.Equal(got, c.want) {
			t.Errorf("%d logins with %q: %v, want %v", c.tries, c.password, got, c.want)
		}
	}
}

// TestOldVersion: a bind with SMPP 3.3 gets message ids of 8 hexadecimal digits, in its receipts and look-ups too.
func TestOldVersion(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	c := w.bound(p, func(o *smpp.Options) { o.Version = smpp.Version33 })
	r := c.submit(nil)
	if r.Outcome != smpp.Accepted || r.MessageID != fmt.Sprintf("%08X", w.count(`SELECT id FROM messages`)) {
		t.Fatalf("%+v", r)
	}
	if got := w.raw(p, 0x02).ask(query(r.MessageID, "")); got != "0 "+r.MessageID+"\x00\x00\x01\x00" {
		t.Errorf("query_sm: %q", got)
	}
	w.finish(sms.Sent, "")
	w.until("a receipt", func() bool { return len(c.deliveries()) == 1 })
	if d := c.deliveries()[0]; d.Receipt == nil || d.Receipt.ID != r.MessageID {
		t.Errorf("receipt %q", d.ShortMessage)
	}
}

// TestPurgedMessage: query_sm tells a message that is not kept any more from one that never was.
func TestPurgedMessage(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	w.bound(p, nil).submit(nil)
	raw := w.raw(p, 0x02)
	old := ulid.MustNew(ulid.Timestamp(time.Now().Add(-24*time.Hour)), rand.Reader).String()
	for _, floor := range []struct {
		upTo int
		want string
	}{{0, "12 "}, {1, "103 "}} {
		w.exec(`INSERT INTO sweeps (name, up_to) VALUES ('purged', $1) ON CONFLICT (name) DO UPDATE SET up_to = $1`,
			floor.upTo)
		if got := raw.ask(query(old, "")); got != floor.want {
			t.Errorf("purged up to %d: %q, want %q", floor.upTo, got, floor.want)
		}
		if got := raw.ask(query("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "")); got != "12 " {
			t.Errorf("purged up to %d, an id of the future: %q", floor.upTo, got)
		}
	}
}

// TestRevokedKeyWaitsForNobody: what waits for a key that may not bind any more is not counted as waiting.
func TestRevokedKeyWaitsForNobody(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	w.bound(p, func(o *smpp.Options) { o.Mode = smpp.Transmitter }).submit(nil)
	w.finish(sms.Sent, "")
	for _, want := range []float64{1, 0} {
		if got, err := p.server.CountWaiting(t.Context()); err != nil || got != want {
			t.Errorf("%v wait, %v; want %v", got, err, want)
		}
		if err := w.keys.RevokeToken(t.Context(), w.key.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnread: little waits for a program that does not read.
func TestUnread(t *testing.T) {
	door, err := smppserver.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Close() }()
	client, err := net.Dial("tcp", door.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	conn, err := door.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	taken := 0
	for err == nil {
		var n int
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		n, err = conn.Write(make([]byte, 1000))
		taken += n
	}
	if taken > 1<<20 {
		t.Errorf("%d bytes wait", taken)
	}
}

// TestRevoke: the notice of a revoked key ends its binds at once.
func TestRevoke(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	w.change = (*smppserver.Server).OnlyByNotice
	p := w.start()
	c := w.bound(p, nil)
	if err := w.keys.RevokeToken(t.Context(), w.key.ID); err != nil {
		t.Fatal(err)
	}
	p.server.Changed("") // as the notice does
	w.until("the bind ends", func() bool { return c.Snapshot().State != smpp.Bound })
}

// TestRate: beyond its rate a key gets ESME_RTHROTTLED, and its session stays. The parts of a long message are not cut.
func TestRate(t *testing.T) {
	w := newBank(t, 10_000, keys.SMPPLimits{TPS: 1, Window: 100})
	c := w.bound(w.start(), func(o *smpp.Options) { o.Window = 100 })
	got := map[smpp.Status]int{}
	began := time.Now()
	for got[smpp.StatusThrottled] < 10 && got[0] < 1000 {
		got[c.submit(nil).Status]++
	}
	if most := 290 + int(time.Since(began).Seconds()); got[0] < 255 || got[0] > most || len(got) != 2 {
		t.Errorf("statuses %v", got)
	}
	part := func(number byte) func(*smpp.Submit) {
		return func(m *smpp.Submit) { m.ESMClass, m.ShortMessage = 0x40, []byte{5, 0, 3, 1, 3, number, 'x'} }
	}
	for number := byte(2); number <= 3; number++ {
		if r := c.submit(part(number)); r.Outcome != smpp.Accepted {
			t.Errorf("part %d: %+v", number, r)
		}
	}
}

// TestRateOfQueries: query_sm and cancel_sm read the database, and count as one segment.
func TestRateOfQueries(t *testing.T) {
	w := newBank(t, 0, keys.SMPPLimits{TPS: 1})
	raw := w.raw(w.start(), 0x02)
	got := map[string]int{}
	for got["88"] < 10 && got["12"] < 1000 {
		for _, b := range [][]byte{query("x", ""), cancel("x")} {
			status, _, _ := strings.Cut(raw.ask(b), " ")
			got[status]++
		}
	}
	if got["88"] < 10 || got["12"] < 100 || got["17"] < 100 {
		t.Errorf("statuses %v", got)
	}
}

// TestSilentClient: a program that answers no receipt gets a window of them and no more; another program of the key
// gets its own. What was refused for now comes again, what was refused for good does not.
func TestSilentClient(t *testing.T) {
	w := newBank(t, 1000, keys.SMPPLimits{TPS: 1000, Window: 100})
	p := w.start()
	silent := w.bound(p, func(o *smpp.Options) { o.Window = 100 })
	silent.answer = func(*smpp.Delivery) {}
	for range 150 {
		silent.submit(nil)
	}
	w.finish(sms.Sent, "")
	w.until("a window of receipts", func() bool { return len(silent.deliveries()) >= smpp.DefaultDeliverWindow })
	other := w.bound(p, nil)
	w.until("the others' receipts", func() bool { return len(other.deliveries()) == 50 })
	if n := len(silent.deliveries()); n != smpp.DefaultDeliverWindow {
		t.Errorf("%d unanswered receipts", n)
	}

	answers := []smpp.Status{smpp.StatusTemporary, smpp.StatusInvDstAddr}
	fussy := w.bound(p, nil)
	fussy.answer = func(d *smpp.Delivery) {
		fussy.mu.Lock()
		n := len(fussy.received)
		fussy.mu.Unlock()
		status := smpp.StatusOK
		if n <= len(answers) {
			status = answers[n-1]
		}
		d.Respond(status)
	}
	fussy.submit(nil)
	fussy.submit(nil)
	w.finish(sms.Sent, "")
	w.until("the refused receipt comes again, the other does not", func() bool { return len(fussy.deliveries()) == 3 })
}

// TestQueryAndCancel: query_sm and cancel_sm see the company's own messages only, and a cancelled message is returned.
func TestQueryAndCancel(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	r := w.bound(p, nil).submit(func(m *smpp.Submit) { m.Validity = "000000010000000R" })
	raw := w.raw(p, 0x02)
	for _, try := range []struct {
		name string
		pdu  []byte
		want string // status, then what the body holds
	}{
		{"query of a pending message", query(r.MessageID, ""), "0 " + r.MessageID + "\x00\x00\x01\x00"},
		{"query with another sender", query(r.MessageID, "OTHER"), "12 "},
		{"query of none", query("01ARZ3NDEKTSV4RRFFQ69G5FAV", ""), "12 "},
		{"query of nonsense", query("12", ""), "12 "},
		{"cancel", cancel(r.MessageID), "0 "},
		{"cancel again", cancel(r.MessageID), "17 "},
		{"cancel without an id", cancel(""), "17 "},
	} {
		if got := raw.ask(try.pdu); got != try.want {
			t.Errorf("%s: %q, want %q", try.name, got, try.want)
		}
	}
	if got := raw.ask(query(r.MessageID, "")); !strings.HasPrefix(got, "0 "+r.MessageID+"\x00") ||
		!strings.HasSuffix(got, "000+\x00\x04\x00") {
		t.Errorf("query of a cancelled message: %q", got)
	}
	if n := w.count(`SELECT credits FROM balances`); n != 10 {
		t.Errorf("%d credits", n)
	}
}

// TestMOToBinds: an MO for a key goes to a receiving bind, a long one in message_payload.
func TestMOToBinds(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	c := w.bound(w.start(), func(o *smpp.Options) { o.Mode = smpp.TransmitterReceiver })
	long := strings.Repeat("Mwaramutse ", 50)
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		return binds.Add(t.Context(), tx, []binds.Delivery{
			{Account: w.key.ID, Number: "+25779000001", Address: "8080", At: time.Now(), Body: "Yego"},
			{Account: w.key.ID, Number: "+25779000001", Address: "8080", At: time.Now(), Body: long}})
	}); err != nil {
		t.Fatal(err)
	}
	w.until("two MOs", func() bool { return len(c.deliveries()) == 2 })
	for i, want := range []string{"Yego", long} {
		if d := c.deliveries()[i]; d.Receipt != nil || string(d.ShortMessage) != want || d.Source != "25779000001" ||
			d.Dest != "8080" {
			t.Errorf("%+v", d)
		}
	}
}

// TestDatabaseAway: without the database a submit gets ESME_RMSGQFUL.
func TestDatabaseAway(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	c := w.bound(w.start(), nil)
	c.submit(nil)
	w.pool.Close()
	if r := c.submit(nil); r.Outcome != smpp.Rejected || r.Status != smpp.StatusMsgQueueFull {
		t.Errorf("%+v", r)
	}
}
