package smpp

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/fiorix/go-smpp/smpp/pdu/pdufield"
)

// FuzzRequest: any body of any request is a Request within its bounds, or is refused with a status that we know.
func FuzzRequest(f *testing.F) {
	for _, cmd := range []command{cmdSubmitSM, cmdDataSM, cmdQuerySM, cmdCancelSM, cmdReplaceSM, cmdSubmitMulti} {
		f.Add(uint32(cmd), deliverBody(0x40, 8, "\x05\x00\x03\x07\x02\x01\x00a", TLV{TagUserMessageReference, []byte{1, 2}}))
		f.Add(uint32(cmd), dataBody(0, 0, TLV{TagMessagePayload, []byte("hello")}))
		f.Add(uint32(cmd), []byte("\x0001M8\x00\x01\x0125761000001\x00\x01\x0125761000001\x00"))
	}
	f.Add(uint32(cmdSubmitSM), append(deliverBody(0, 0, "x"), 2, 4, 0))
	f.Add(uint32(cmdSubmitSM), append(deliverBody(0, 0, "x"), 0, 0))
	f.Fuzz(func(t *testing.T, cmd uint32, body []byte) {
		op, known := operation(command(cmd))
		if !known || len(body) > maxPDU {
			return
		}
		r, err := decodeRequest(op, bytes.Clone(body), time.Now())
		if err != nil {
			bad, ok := errors.AsType[*decodeError](err)
			if !ok || bad.status == StatusOK || bad.status.label() == "other" || len(err.Error()) > 200 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if max(len(r.Source), len(r.Dest), len(r.ServiceType)) > maxPeerAddress || len(r.MessageID) > maxMessageID ||
			len(r.ShortMessage) > maxText ||
			len(r.TLVs) > maxTLVs || max(len(r.Schedule), len(r.Validity)) > validityLength ||
			r.UDHLength() > len(r.ShortMessage) {
			t.Fatalf("%q: %+v", body, r)
		}
		describe(tracedBytes{time.Now(), false, appendPDU(nil, header{command(cmd), 0, 1}, body...)})
		if op != OpSubmit && op != OpQuery || headerLength+len(body) > 4096 || r.UDHLength() > 0 {
			return
		}
		var fields map[pdufield.Name]string
		for spare := 0; fields == nil && spare < tlvHeader && spare < len(body); spare++ {
			fields, _ = theirs(command(cmd), body[:len(body)-spare])
		}
		want := map[pdufield.Name]string{pdufield.SourceAddr: r.Source, pdufield.SourceAddrTON: string([]byte{r.SourceTON})}
		if op == OpQuery {
			want[pdufield.MessageID] = r.MessageID
		} else {
			want[pdufield.ServiceType], want[pdufield.DestinationAddr], want[pdufield.ESMClass] = r.ServiceType, r.Dest,
				string([]byte{r.ESMClass})
			want[pdufield.ScheduleDeliveryTime], want[pdufield.ValidityPeriod] = r.Schedule, r.Validity
			want[pdufield.PriorityFlag], want[pdufield.ProtocolID] = string([]byte{r.Priority}), string([]byte{r.ProtocolID})
			want[pdufield.ReplaceIfPresentFlag], want[pdufield.SMDefaultMsgID] = string([]byte{r.Replace}),
				string([]byte{r.DefaultMessage})
			want[pdufield.RegisteredDelivery], want[pdufield.DataCoding] = string([]byte{r.RegisteredDelivery}),
				string([]byte{r.DataCoding})
		}
		for name, value := range want {
			if fields != nil && fields[name] != value {
				t.Errorf("%q: %s is %q, go-smpp has %q", body, name, value, fields[name])
			}
		}
	})
}

// FuzzLogin: any body of a bind is a Login within its bounds or is refused, and go-smpp reads the same.
func FuzzLogin(f *testing.F) {
	f.Add(bindBody("acme", "secret", 0x34))
	f.Add([]byte("acme\x00secret\x00\x00\x33\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := decodeLogin(Transceiver, bytes.Clone(body))
		if err != nil {
			if bad, ok := errors.AsType[*decodeError](err); !ok || bad.status == StatusOK || len(err.Error()) > 200 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if max(len(l.SystemID), len(l.Password), len(l.SystemType), len(l.AddressRange)) > maxCredential {
			t.Fatalf("%q: %+v", body, l)
		}
		describe(tracedBytes{time.Now(), false, appendPDU(nil, header{cmdBindTransceiver, 0, 1}, body...)})
		fields, _ := theirs(cmdBindTransceiver, body)
		for name, value := range map[pdufield.Name]string{
			pdufield.SystemID: l.SystemID, pdufield.Password: l.Password, pdufield.SystemType: l.SystemType,
			pdufield.InterfaceVersion: string([]byte{l.Version}), pdufield.AddressRange: l.AddressRange,
		} {
			if fields != nil && fields[name] != value {
				t.Errorf("%q: %s is %q, go-smpp has %q", body, name, value, fields[name])
			}
		}
	})
}
