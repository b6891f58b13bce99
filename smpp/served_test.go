package smpp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Command ids of the tests' raw client.
const (
	rawBindReceiver    = 0x00000001
	rawBindTransmitter = 0x00000002
	rawQuery           = 0x00000003
	rawReplace         = 0x00000007
	rawCancel          = 0x00000008
	rawTransceiver     = 0x00000009
	rawMulti           = 0x00000021
)

// door serves every connection of a listener in the simplest way: it lets in the password secret.
type door struct {
	t       testing.TB
	ln      net.Listener
	opts    Serving
	window  int
	request func(*Request)
	peers   chan *Peer
	ended   chan error
	late    chan Result
	logins  atomic.Int32
}

// newDoor listens and serves until the test ends. change may edit it first.
func newDoor(t testing.TB, change func(*door)) *door {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, ln: ln, peers: make(chan *Peer, 100), ended: make(chan error, 100), late: make(chan Result, 10)}
	d.request = func(r *Request) { r.Accept("01M8QRSTUV0000000000000000") }
	d.opts = Serving{SystemID: "INTUMWA", DrainTimeout: 100 * time.Millisecond, UnbindTimeout: 100 * time.Millisecond,
		Metrics: NewServerMetrics(prometheus.NewRegistry())}
	d.opts.Login = d.login
	if change != nil {
		change(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := d.ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { d.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		cancel()
		serving.Wait()
	})
	return d
}

func (d *door) serve(ctx context.Context, conn net.Conn) {
	err := NewPeer(conn, &d.opts).Run(ctx)
	select {
	case d.ended <- err:
	default:
	}
}

func (d *door) login(_ context.Context, p *Peer, l Login) (Admission, Status) {
	d.logins.Add(1)
	if l.SystemID != "acme" || l.Password != "secret" {
		return Admission{}, StatusInvPassword
	}
	return Admission{Window: d.window, Request: d.request, Bound: func() { d.peers <- p },
		OnLate: func(_ uint64, r Result) { d.late <- r }}, StatusOK
}

// connect opens a connection to the door.
func (d *door) connect() *peer {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.ln.Addr().String())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return newPeer(d.t, conn)
}

func bindBody(systemID, password string, version byte) []byte {
	return append([]byte(systemID+"\x00"+password+"\x00test\x00"), version, 1, 1, 0)
}

// bindAs binds and returns our end.
func (d *door) bindAs(command uint32, version byte) (*peer, *Peer) {
	d.t.Helper()
	p := d.connect()
	p.send(command, 0, 7, bindBody("acme", "secret", version)...)
	if got := p.expect(command | 0x80000000); got.status != 0 || got.sequence != 7 {
		d.t.Fatalf("the bind was answered %+v", got)
	}
	return p, <-d.peers
}

func (d *door) end() error {
	d.t.Helper()
	select {
	case err := <-d.ended:
		return err
	case <-time.After(patience):
		d.t.Fatal("Run does not return")
		return nil
	}
}

// TestServedBind: what answers a bind, for each version and mode.
func TestServedBind(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	version := "\x02\x10\x00\x01\x34"
	for _, c := range []struct {
		name            string
		command, status uint32
		body            []byte
		answer          string
	}{
		{"transceiver", rawTransceiver, 0, bindBody("acme", "secret", 0x34), "INTUMWA\x00" + version},
		{"transmitter", rawBindTransmitter, 0, bindBody("acme", "secret", 0x34), "INTUMWA\x00" + version},
		{"receiver", rawBindReceiver, 0, bindBody("acme", "secret", 0x34), "INTUMWA\x00" + version},
		{"SMPP 3.3", rawTransceiver, 0, bindBody("acme", "secret", 0x33), "INTUMWA\x00"},
		{"no version", rawTransceiver, 0, bindBody("acme", "secret", 0), "INTUMWA\x00"},
		{"SMPP 5", rawTransceiver, 0, bindBody("acme", "secret", 0x50), "INTUMWA\x00" + version},
		{"a wrong password", rawTransceiver, 0x0E, bindBody("acme", "secrets", 0x34), "\x00"},
		{"no system_id", rawTransceiver, 0x0E, bindBody("", "", 0x34), "\x00"},
		{"cut off", rawTransceiver, 0x02, []byte("acme\x00secret\x00test\x00\x34\x01\x01"), "\x00"},
		{"no NUL", rawBindReceiver, 0x02, []byte("acme"), "\x00"},
		{"empty", rawBindReceiver, 0x02, nil, "\x00"},
		{"a long system_id", rawTransceiver, 0x0F, bindBody(strings.Repeat("a", 300), "secret", 0x34), "\x00"},
		{"a long password", rawTransceiver, 0x0E, bindBody("acme", strings.Repeat("a", 300), 0x34), "\x00"},
	} {
		p := d.connect()
		p.send(c.command, 0, 7, c.body...)
		got := p.expect(c.command | 0x80000000)
		if got.status != c.status || got.sequence != 7 || string(got.body) != c.answer {
			t.Errorf("%s: answered %+v", c.name, got)
		}
		if c.status != 0 {
			p.expectClose()
			if d.end() == nil {
				t.Errorf("%s: Run returns no error", c.name)
			}
			continue
		}
		bound := <-d.peers
		if l := bound.Login(); l.SystemID != "acme" || l.Password != "" || l.SystemType != "test" ||
			l.Mode.String() != strings.Fields(c.name + " ")[0] && c.command != rawTransceiver {
			t.Errorf("%s: %+v", c.name, l)
		}
		p.send(rawUnbind, 0, 8)
		p.expect(rawUnbindResp)
		_ = p.conn.Close()
		if err := d.end(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if got := counted(t, d.opts.Metrics.all.binds.WithLabelValues(bindOK, "ESME_ROK")); got != 6 {
		t.Errorf("%v binds counted", got)
	}
}

// TestBeforeTheBind: nothing but a bind is taken before the bind, and only little is answered.
func TestBeforeTheBind(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) { d.request = func(*Request) { t.Error("a request before the bind") } })
	p := d.connect()
	for _, c := range []struct{ command, answer, status uint32 }{
		{rawSubmit, rawSubmitResp, 4}, {rawData, rawDataResp, 4}, {rawQuery, 0x80000003, 4}, {rawCancel, 0x80000008, 4},
		{rawEnquire, rawEnquireResp, 0}, {0x77, rawGenericNack, 3}, {rawDeliver, rawGenericNack, 3},
	} {
		p.send(c.command, 0, 5, deliverBody(0, 0, "x")...)
		if got := p.expect(c.answer); got.status != c.status || got.sequence != 5 {
			t.Errorf("%#x is answered %+v", c.command, got)
		}
	}
	p.send(rawTransceiver, 0, 6, bindBody("acme", "secret", 0x34)...)
	p.expect(rawTransceiver | 0x80000000)
	flood := d.connect()
	for range maxUnbound {
		flood.send(rawEnquire, 0, 1)
		flood.expect(rawEnquireResp)
	}
	flood.expectClose()
	unbound := d.connect()
	unbound.send(rawUnbind, 0, 9)
	unbound.expect(rawUnbindResp)
	unbound.expectClose()
	large := d.connect()
	large.send(rawSubmit, 0, 1, make([]byte, 2000)...)
	if got := large.expect(rawGenericNack); got.status != 2 {
		t.Errorf("%+v", got)
	}
	large.expectClose()
}

// TestServedRequests: every request gets its answer under its own command and sequence_number.
func TestServedRequests(t *testing.T) {
	t.Parallel()
	got := make(chan *Request, 1)
	d := newDoor(t, func(d *door) { d.request = func(r *Request) { got <- r } })
	p, ours := d.bindAs(rawTransceiver, 0x34)
	submit := append([]byte("VMA\x00\x05\x00ACME\x00\x01\x0125761000001\x00"), 0x40, 0x7F, 1)
	submit = append(submit, "000000001000000R\x00261128120000004+\x00"...)
	submit = append(submit, 1, 0, 8, 3, 10)
	submit = append(submit, "\x05\x00\x03\x07\x02\x01\x00a\x00b"...)
	submit = appendTLVs(submit, []TLV{{TagUserMessageReference, []byte{1, 2}}, {0x1400, []byte("unknown")}})
	p.send(rawSubmit, 0, 11, submit...)
	r := <-got
	reference, _ := r.TLV(TagUserMessageReference)
	if r.Operation != OpSubmit || r.ServiceType != "VMA" || r.SourceTON != 5 || r.Source != "ACME" || r.DestTON != 1 ||
		r.DestNPI != 1 ||
		r.Dest != "25761000001" || r.ESMClass != 0x40 || r.ProtocolID != 0x7F || r.Priority != 1 ||
		r.Schedule != "000000001000000R" ||
		r.Validity != "261128120000004+" || r.RegisteredDelivery != 1 || r.Replace != 0 || r.DataCoding != 8 ||
		r.DefaultMessage != 3 ||
		r.UDHLength() != 6 || string(r.ShortMessage[6:]) != "\x00a\x00b" || !bytes.Equal(reference, []byte{1, 2}) ||
		len(r.TLVs) != 2 {
		t.Errorf("%+v", r)
	}
	r.Accept("01M8QRSTUV0000000000000000")
	r.Refuse(StatusSysErr, "too late")
	if a := p.expect(rawSubmitResp); a.sequence != 11 || a.status != 0 ||
		string(a.body) != "01M8QRSTUV0000000000000000\x00" {
		t.Errorf("%+v", a)
	}
	address := "\x01\x0125761000001\x00"
	for _, c := range []struct {
		name            string
		command, status uint32
		body            string
		answer          func(*Request)
		want            string
	}{
		{"submit_sm refused with a text", rawSubmit, 0x40B, string(deliverBody(0, 0, "x")),
			func(r *Request) { r.Refuse(0x40B, "no credit") }, "\x00\x00\x1D\x00\x0Ano credit\x00"},
		{"submit_sm refused", rawSubmit, 0x58, string(deliverBody(0, 0, "x")),
			func(r *Request) { r.Refuse(StatusThrottled, "") }, "\x00"},
		{"a long text", rawSubmit, 8, string(deliverBody(0, 0, "x")),
			func(r *Request) { r.Refuse(8, strings.Repeat("é", 200)) }, "\x00\x00\x1D\x00\xFF" + strings.Repeat("é", 127) +
				"\x00"},
		{"data_sm", rawData, 0, string(dataBody(0, 0, TLV{TagMessagePayload, []byte("hello")})), func(r *Request) {
			if string(r.ShortMessage) != "hello" || r.Operation != OpData {
				t.Errorf("%+v", r)
			}
			r.Accept("1")
		}, "1\x00"},
		{"query_sm", rawQuery, 0, "01M8\x00" + address, func(r *Request) {
			if r.MessageID != "01M8" || r.Source != "25761000001" {
				t.Errorf("%+v", r)
			}
			r.AnswerQuery(r.MessageID, "261128120000004+", 2, 9)
		}, "01M8\x00261128120000004+\x00\x02\x09"},
		{"query_sm refused", rawQuery, 0x67, "01M8\x00" + address,
			func(r *Request) { r.Refuse(StatusQueryFailed, "not yours") }, ""},
		{"cancel_sm", rawCancel, 0, "\x0001M8\x00" + address + address, func(r *Request) {
			if r.MessageID != "01M8" || r.Source != "25761000001" || r.Dest != "25761000001" {
				t.Errorf("%+v", r)
			}
			r.Accept("")
		}, ""},
		{"cancel_sm refused", rawCancel, 0x11, "\x0001M8\x00" + address + address,
			func(r *Request) { r.Refuse(StatusCancelFailed, "too late") }, ""},
		{"replace_sm", rawReplace, 0x13, "01M8\x00" + address, func(r *Request) { r.Refuse(StatusReplaceFailed, "") }, ""},
		{"submit_multi", rawMulti, 0x33, "anything", func(r *Request) { r.Refuse(StatusInvNumDests, "") }, ""},
	} {
		p.send(c.command, 0, 4711, []byte(c.body)...)
		c.answer(<-got)
		if a := p.expect(c.command | 0x80000000); a.sequence != 4711 || a.status != c.status || string(a.body) != c.want {
			t.Errorf("%s: %+v, body %q", c.name, a, a.body)
		}
	}
	snap := ours.Snapshot()
	if snap.Accepted != 4 || snap.Refusals[0x40B] != 1 || snap.Refusals[StatusThrottled] != 1 || snap.Requests != 0 ||
		snap.Window != DefaultServedWindow ||
		snap.SystemID != "acme" || snap.Bound.IsZero() || snap.LastPDU.IsZero() || snap.Refusals[StatusSysErr] != 1 {
		t.Errorf("%+v", snap)
	}
}

// TestRefusedBySession: what never becomes a Request.
func TestRefusedBySession(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) { d.request = func(r *Request) { t.Errorf("a request: %+v", r) } })
	p, ours := d.bindAs(rawTransceiver, 0x34)
	receiver, _ := d.bindAs(rawBindReceiver, 0x34)
	cut := deliverBody(0, 0, "hello")
	between := func(old, new string) []byte {
		return bytes.Replace(deliverBody(0, 0, "x"), []byte(old), []byte(new), 1)
	}
	schedule := bytes.Replace(deliverBody(0, 0, "x"), []byte("INTUMWA\x00\x00\x00\x00\x00"),
		[]byte("INTUMWA\x00\x00\x00\x00000000001000000R0\x00"), 1)
	validity := bytes.Replace(deliverBody(0, 0, "x"), []byte("INTUMWA\x00\x00\x00\x00\x00\x00"),
		[]byte("INTUMWA\x00\x00\x00\x00\x00000000001000000R0\x00"), 1)
	for _, c := range []struct {
		name                    string
		to                      *peer
		command, answer, status uint32
		body                    []byte
	}{
		{"a second bind", p, rawTransceiver, rawTransceiver | 0x80000000, 5, bindBody("acme", "secret", 0x34)},
		{"another second bind", p, rawBindReceiver, rawBindReceiver | 0x80000000, 5, nil},
		{"submit_sm on a receiver", receiver, rawSubmit, rawSubmitResp, 4, deliverBody(0, 0, "x")},
		{"query_sm on a receiver", receiver, rawQuery, 0x80000003, 4, nil},
		{"an unknown command", p, 0x77, rawGenericNack, 3, nil},
		{"deliver_sm of a client", p, rawDeliver, rawGenericNack, 3, deliverBody(0, 0, "x")},
		{"an empty submit_sm", p, rawSubmit, rawSubmitResp, 2, nil},
		{"submit_sm without sm_length", p, rawSubmit, rawSubmitResp, 2, cut[:len(cut)-6]},
		{"a cut text", p, rawSubmit, rawSubmitResp, 2, cut[:len(cut)-1]},
		{"a cut TLV", p, rawSubmit, rawSubmitResp, 0xC0, append(deliverBody(0, 0, "x"), 0x14, 0, 0, 9, 1)},
		{"a TLV without its length", p, rawSubmit, rawSubmitResp, 0xC0, append(deliverBody(0, 0, "x"), 2, 4)},
		{"a TLV with half its length", p, rawSubmit, rawSubmitResp, 0xC0, append(deliverBody(0, 0, "x"), 2, 4, 0)},
		{"UDHI without UDH", p, rawSubmit, rawSubmitResp, 0x43, deliverBody(0x40, 0, "hello")},
		{"UDHI without text", p, rawSubmit, rawSubmitResp, 0x43, deliverBody(0x40, 0, "")},
		{"a long source_addr", p, rawSubmit, rawSubmitResp, 0x0A, between("25779000000", strings.Repeat("1", 65))},
		{"a long destination_addr", p, rawSubmit, rawSubmitResp, 0x0B, between("INTUMWA", strings.Repeat("1", 65))},
		{"a long schedule_delivery_time", p, rawSubmit, rawSubmitResp, 0x61, schedule},
		{"a long validity_period", p, rawSubmit, rawSubmitResp, 0x62, validity},
		{"a long text", p, rawSubmit, rawSubmitResp, 1,
			deliverBody(0, 0, "", TLV{TagMessagePayload, make([]byte, maxText+1)})},
		{"an empty query_sm", p, rawQuery, 0x80000003, 2, nil},
		{"a long id", p, rawQuery, 0x80000003, 0x0C, append(bytes.Repeat([]byte("1"), 300), 0, 0, 0, 0)},
		{"a cut cancel_sm", p, rawCancel, 0x80000008, 2, []byte("\x001\x00")},
	} {
		c.to.send(c.command, 0, 4711, c.body...)
		if got := c.to.expect(c.answer); got.status != c.status || got.sequence != 4711 {
			t.Errorf("%s: answered %+v", c.name, got)
		} else if c.answer == rawSubmitResp && !bytes.HasPrefix(got.body, []byte{0, 0, 0x1D}) {
			t.Errorf("%s: no words in %q", c.name, got.body)
		}
	}
	for _, response := range []uint32{rawDeliverResp, rawSubmitResp, 0x80000077, rawEnquireResp, rawGenericNack,
		rawUnbindResp} {
		// to nothing
		p.send(response, 0, 4711, 0)
	}
	p.send(rawEnquire, 0, 1)
	p.expect(rawEnquireResp)
	if snap := ours.Snapshot(); snap.Refusals[StatusAlreadyBound] != 2 || snap.Requests != 0 {
		t.Errorf("%+v", snap)
	}
	if held := ours.allowance.bytes.Load(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// TestServedDeliver: a deliver_sm as SMPP 3.4 writes it, its result, and what a 3.3 peer gets.
func TestServedDeliver(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	receipt := &Submit{SourceTON: 1, SourceNPI: 1, Source: "25761000001", DestTON: 5, Dest: "ACME", ESMClass: 4,
		ShortMessage: []byte(receiptText),
		TLVs: []TLV{{TagReceiptedMessageID, []byte("0123456789\x00")}, {TagMessageState, []byte{2}},
			{TagNetworkErrorCode, []byte{3, 0, 0}}}}
	deliver := func(ours *Peer) <-chan Result {
		t.Helper()
		results := make(chan Result, 2)
		if err := ours.Deliver(t.Context(), receipt, func(r Result) { results <- r }); err != nil {
			t.Fatal(err)
		}
		return results
	}
	p, ours := d.bindAs(rawTransceiver, 0x34)
	results := deliver(ours)
	got := p.expect(rawDeliver)
	read, err := Reading{}.decode(cmdDeliverSM, got.body, time.Now())
	if err != nil || read.broken != nil || read.Receipt == nil || read.Receipt.ID != "0123456789" ||
		read.Receipt.State != "DELIVRD" || len(read.TLVs) != 3 ||
		read.Source != "25761000001" || read.Dest != "ACME" || read.ESMClass != 4 ||
		string(read.ShortMessage) != receiptText {
		t.Errorf("%+v, %v", read, err)
	}
	p.send(rawDeliverResp, 0, got.sequence, 0)
	if r := result(t, results); r.Outcome != Accepted || r.MessageID != "" {
		t.Errorf("%+v", r)
	}
	for _, status := range []uint32{0x08, 0x14, 0x04, 0x0B} {
		results = deliver(ours)
		p.send(rawDeliverResp, status, p.expect(rawDeliver).sequence, 0)
		r := result(t, results)
		if refused, ok := errors.AsType[*StatusError](r.Err); r.Outcome != Rejected || r.Status != Status(status) || !ok ||
			refused.Command != "deliver_sm" {
			t.Errorf("%+v", r)
		}
	}
	if snap := ours.Snapshot(); snap.Delivered != 1 || snap.InFlight != 0 {
		t.Errorf("%+v", snap)
	}
	old, ours33 := d.bindAs(rawBindReceiver, 0x33)
	results = deliver(ours33)
	got = old.expect(rawDeliver)
	if read, err = (Reading{}).decode(cmdDeliverSM, got.body, time.Now()); err != nil || len(read.TLVs) != 0 ||
		string(read.ShortMessage) != receiptText {
		t.Errorf("a 3.3 peer gets %+v, %v", read, err)
	}
	_ = old.conn.Close()
	if r := result(t, results); r.Outcome != NoAnswer {
		t.Errorf("%+v", r)
	}
	_, transmitter := d.bindAs(rawBindTransmitter, 0x34)
	if err := transmitter.Deliver(t.Context(), receipt, nil); !errors.Is(err, ErrNotBound) {
		t.Errorf("a transmitter: %v", err)
	}
	until(t, "ended", func() bool { return errors.Is(ours33.Deliver(t.Context(), receipt, nil), ErrNotBound) })
	if err := ours.Deliver(t.Context(), &Submit{}, nil); err == nil {
		t.Error("an empty deliver_sm was sent")
	}
	if n := counted(t, d.opts.Metrics.all.results[Rejected]); n != 4 {
		t.Errorf("%v rejected", n)
	}
}

// A 3.3 client gets no text with a refusal.
func TestRefusedInVersion33(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) { d.request = func(r *Request) { r.Refuse(0x40B, "no credit") } })
	p, _ := d.bindAs(rawTransceiver, 0x33)
	p.send(rawSubmit, 0, 1, deliverBody(0, 0, "x")...)
	if a := p.expect(rawSubmitResp); a.status != 0x40B || string(a.body) != "\x00" {
		t.Errorf("%+v", a)
	}
}

// TestUnbindBothWays: what is requested is answered before the session ends, whoever ends it.
func TestUnbindBothWays(t *testing.T) {
	t.Parallel()
	got := make(chan *Request, 10)
	d := newDoor(t, func(d *door) {
		d.request = func(r *Request) { got <- r }
		d.opts.DrainTimeout, d.opts.UnbindTimeout = patience, patience
	})
	// The peer unbinds with a request open.
	p, _ := d.bindAs(rawTransceiver, 0x34)
	p.send(rawSubmit, 0, 1, deliverBody(0, 0, "x")...)
	p.send(rawUnbind, 0, 2)
	(<-got).Accept("1")
	p.expect(rawSubmitResp)
	if a := p.expect(rawUnbindResp); a.sequence != 2 {
		t.Errorf("%+v", a)
	}
	_ = p.conn.Close()
	if err := d.end(); err != nil {
		t.Error(err)
	}
	// We unbind with a request open, and refuse a later one.
	p, ours := d.bindAs(rawTransceiver, 0x34)
	p.send(rawSubmit, 0, 1, deliverBody(0, 0, "x")...)
	open := <-got
	ours.Unbind("the key is revoked", patience)
	ours.Unbind("twice", patience)
	p.send(rawSubmit, 0, 2, deliverBody(0, 0, "x")...)
	if a := p.expect(rawSubmitResp); a.sequence != 2 || a.status != 0x14 {
		t.Errorf("%+v", a)
	}
	open.Accept("2")
	if a := p.expect(rawSubmitResp); a.sequence != 1 || a.status != 0 {
		t.Errorf("%+v", a)
	}
	p.send(rawUnbindResp, 0, p.expect(rawUnbind).sequence)
	p.expectClose()
	if err := d.end(); err != nil {
		t.Error(err)
	}
	open.Accept("2") // nothing happens
}

// TestUnbindIsBounded: a revoked key's session ends in time, whatever its peer does.
func TestUnbindIsBounded(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) {
		d.request = func(*Request) {}
		d.opts.DrainTimeout, d.opts.UnbindTimeout = time.Minute, time.Minute
	})
	p, ours := d.bindAs(rawTransceiver, 0x34)
	p.send(rawSubmit, 0, 1, deliverBody(0, 0, "x")...)
	until(t, "taken", func() bool { return ours.Snapshot().Requests == 1 })
	began := time.Now()
	ours.Unbind("the key is revoked", 3*time.Second) // a third of it is for the unbind
	p.expect(rawUnbind)
	p.expectClose()
	if took := time.Since(began); took > patience {
		t.Errorf("it took %s", took)
	}
}

// rawLength writes a header with this command_length.
func rawLength(n uint32) []byte {
	b := encodeRaw(packet{rawSubmit, 0, 1, nil})
	binary.BigEndian.PutUint32(b, n)
	return b
}

// A carrier that unbinds gets the response to its deliver_sm before unbind_resp, too.
func TestCarrierUnbindsWithDelivery(t *testing.T) {
	t.Parallel()
	got := make(chan *Delivery, 1)
	_, p, _ := newBound(t, func(o *Options) { o.Deliver = func(d *Delivery) { got <- d } })
	p.send(rawDeliver, 0, 77, deliverBody(4, 0, receiptText)...)
	p.send(rawUnbind, 0, 78)
	d := <-got
	p.silent(50 * time.Millisecond)
	d.Respond(StatusOK)
	p.expect(rawDeliverResp)
	p.expect(rawUnbindResp)
}

// TestServedTogether: deliveries, requests and ends from many sides at once. Every done is called once.
func TestServedTogether(t *testing.T) {
	t.Parallel()
	d := newDoor(t, nil)
	var all sync.WaitGroup
	for i := range 20 {
		p, ours := d.bindAs(rawTransceiver, 0x34)
		var admitted, done atomic.Int64
		for range 4 {
			all.Go(func() {
				for ours.Deliver(t.Context(), sample(), func(Result) { done.Add(1) }) == nil {
					admitted.Add(1)
				}
			})
		}
		all.Go(func() { // the client answers everything and submits once for each deliver_sm
			for {
				got, err := p.receive()
				if err != nil {
					return
				}
				if got.command == rawDeliver {
					_, _ = p.conn.Write(append(encodeRaw(packet{rawDeliverResp, 0, got.sequence, []byte{0}}),
						encodeRaw(packet{rawSubmit, 0, got.sequence, deliverBody(0, 0, "x")})...))
				}
			}
		})
		all.Go(func() {
			until(t, "messages pass", func() bool { return ours.Snapshot().Delivered > 50 && ours.Snapshot().Accepted > 50 })
			if i%2 == 0 {
				ours.Unbind("an operator", 100*time.Millisecond)
			} else {
				_ = p.conn.Close()
			}
			until(t, "every done is called", func() bool { return ours.session.ended() && admitted.Load() == done.Load() })
		})
	}
	all.Wait()
}
