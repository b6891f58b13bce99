package carriersim

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"
)

// quick has the fates that are late late enough to tell, no more.
var quick = Options{
	Seed: 7, LateResponse: 60 * time.Millisecond, LateReceipt: 60 * time.Millisecond,
	ReceiptLead: 40 * time.Millisecond, ReceiptGap: 3 * time.Millisecond, EchoReference: false,
}

const umr = "\x02\x04\x00\x02\x12\x34" // user_message_reference 0x1234

func TestEveryFate(t *testing.T) {
	const ok, receipt = "resp ESME_ROK", "receipt DELIVRD"
	good := []string{ok, receipt}
	after := func(first ...string) []string { return append(first, ok, receipt) }
	told := func(what ...string) []string { return append([]string{ok}, what...) }
	// What the client sees; a line "again" has it submit once more.
	want := map[string][]string{
		"00": good, "01": told("receipt UNDELIV"), "02": {"resp ESME_RINVDSTADR"},
		"03": after("resp ESME_RTHROTTLED", "again", "resp ESME_RTHROTTLED", "again"),
		"04": after("resp ESME_RSYSERR", "again"), "05": after("resp ESME_RMSGQFUL", "again"),
		"06": {}, "07": {ok}, "08": {receipt, ok}, "09": good, "10": good,
		"11": told(receipt, receipt, receipt, receipt, receipt, receipt, receipt, receipt, receipt, receipt),
		"12": told(receipt, "receipt UNDELIV"), "13": told("receipt ENROUTE", receipt),
		"14": told("receipt EXPIRED"), "15": told("receipt REJECTD"), "16": told("receipt ACCEPTD"), "17": told("receipt UNKNOWN"),
		"18": good, "19": good, "20": told("data DELIVRD"), "21": good, "22": good,
		"23": after("closed", "again"), "24": after("half", "again"), "25": good,
		"26": told("forged DELIVRD", "receipt UNDELIV"), "27": told("intermediate ENROUTE", receipt),
		"28": good, "29": good, "30": told("receipt DELETED"), "31": told("receipt BUFFRED", receipt),
		"32": told("receipt UNDELIV", receipt), "33": good, "34": good, "35": told("receipt UNDELIV"),
		"36": {receipt}, "37": {"closed", "reconnect", receipt}, "38": {ok, ok, receipt}, "39": {ok, ok, receipt},
		"40": {"nack ESME_RINVCMDID"}, "41": after("resp ESME_RSUBMITFAIL", "again"),
		"42": {"resp ESME_RTHROTTLED", "again", "resp ESME_RTHROTTLED"}, "43": {"resp ESME_RMSGQFUL", "again", "resp ESME_RMSGQFUL"},
		"44": {"resp ESME_RSYSERR", "again", "resp ESME_RSYSERR"},
		"45": {"resp ESME_RINVSRCTON"}, "46": {"resp ESME_RINVSERTYP"}, "47": {"resp ESME_RX_P_APPN"},
		"48": after("resp ESME_RX_T_APPN", "again"), "49": after("resp 0x00000400", "again"),
		"50": good, "51": good, "52": good, "53": good, "54": good, "55": good, "56": {"resp ESME_RINVDSTADR"},
		"57": {ok, "unbind", "closed", "reconnect", receipt}, "58": {ok, "garbage"}, "59": {ok, "length 0xffffffff"},
		"60": good, "61": told("receipt UNDELIV", receipt), "62": good, "63": told(receipt, "text"), "64": good,
		"65": told("alert", receipt), "66": good, "67": told("receipt ENROUTE"), "99": good, "71": good,
	}
	for _, f := range Fates() {
		if _, ok := want[f.Digits]; !ok {
			t.Errorf("fate %s (%s) has no test", f.Digits, f.Name)
		}
	}
	for digits, lines := range want {
		t.Run(digits, func(t *testing.T) {
			t.Parallel()
			c, addr := serve(t, quick)
			k := bound(t, addr)
			m := usual("257790000"+digits, "hello "+digits)
			m.tlvs = umr
			k.submit(m)
			var seen []pdu
			for i := 0; i < len(lines); i++ {
				if lines[i] == "again" || lines[i] == "reconnect" {
					if i > 0 && (lines[i-1] == "closed" || lines[i-1] == "half") {
						k = bound(t, addr)
					}
					if lines[i] == "again" {
						k.submit(m)
					}
					continue
				}
				p := k.next()
				seen = append(seen, p)
				if said := p.say(t); said != lines[i] {
					t.Fatalf("line %d: %s, want %s of %q", i, said, lines[i], lines)
				}
			}
			checkFate(t, digits, seen)
			if len(seen) > 0 && seen[len(seen)-1].odd != "" {
				return
			}
			until(t, "all receipts confirmed", func() bool { return c.Stats().ReceiptsWaiting == 0 })
			k.request(0x15, nil)
			if said := k.next().say(t); said != "alive" {
				t.Errorf("one more than expected: %s", said)
			}
			if v := c.Violations(); len(v) > 0 {
				t.Errorf("violations: %+v", v)
			}
		})
	}
}

// checkFate looks at what a word or two do not show.
func checkFate(t *testing.T, digits string, seen []pdu) {
	t.Helper()
	hex := func(s string) string {
		n, _ := new(big.Int).SetString(s, 16)
		return fmt.Sprint(n)
	}
	var id string
	var g got
	for _, p := range seen {
		if p.command == 0x80000004 && p.status == 0 {
			id = messageID(t, p)
		}
		if p.command == 5 || p.command == 0x103 {
			g = p.delivery(t)
			if g.from != "257790000"+digits || g.to != "DEMO" {
				t.Errorf("receipt from %s to %s", g.from, g.to)
			}
		}
	}
	is := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	switch digits {
	case "00":
		is("id", g.field("id"), id)
		is("text", g.field("text"), "hello")
		is("esm_class", fmt.Sprint(g.esm), "4")
		if len(g.tlvs) > 0 || !strings.Contains(g.text, " sub:001 dlvrd:001 submit date:") || len(strings.Fields(g.text)) != 11 {
			t.Errorf("receipt %q %v", g.text, g.tlvs)
		}
	case "10":
		is("id", g.field("id"), hex(id))
	case "52":
		is("id", hex(g.field("id")), id)
	case "18":
		is("text", g.text, "")
		is("receipted_message_id", g.tlvs[0x1E], id+"\x00")
		is("network_error_code", g.tlvs[0x0423], "\x03\x00\x00")
	case "19", "20":
		is("payload", g.tlvs[0x0424], g.text)
		is("id", g.field("id"), id)
	case "21":
		if id == strings.ToLower(id) || !strings.Contains(g.text, strings.ToLower(id)) {
			t.Errorf("id %q, receipt %q", id, g.text)
		}
	case "25":
		is("id", id, "")
	case "33":
		is("err", g.field("err"), "0000")
		is("done date", fmt.Sprint(len(g.field("done date"))), "12")
		is("vendor TLV", g.tlvs[0x1454], "64208")
	case "34":
		is("text", g.text, "STAT:DELIVRD ID:"+id)
	case "35":
		is("receipted_message_id", g.tlvs[0x1E], id+"\x00")
		is("message_state", g.tlvs[0x0427], "\x02")
	case "36", "37":
		is("user_message_reference", g.tlvs[0x0204], "\x12\x34")
	case "39":
		if seen[0].seq == seen[1].seq {
			t.Error("the stranger's answer has the right sequence")
		}
	case "50":
		is("length", fmt.Sprint(len(id)), "36")
		is("id", g.field("id"), id)
	case "51":
		is("length", fmt.Sprint(len(id)), "64")
		is("id", g.field("id"), id)
	case "53":
		is("id", strings.TrimLeft(id, "0"), g.field("id"))
		is("length", fmt.Sprint(len(id)), "20")
	case "64":
		is("id", strings.TrimLeft(g.field("id"), "0"), id)
		is("length", fmt.Sprint(len(g.field("id"))), "20")
	case "56":
		is("body", string(seen[0].body), "")
	case "60":
		is("congestion_state", string(seen[0].body[len(id)+1:]), "\x04\x28\x00\x01\x5a")
	case "61":
		first := seen[1].delivery(t)
		if first.field("id") == id {
			t.Error("the stranger's receipt has the right id")
		}
		is("id", g.field("id"), id)
	case "62":
		is("esm_class", fmt.Sprintf("%#x", g.esm), "0x44")
	}
}

// TestFatesBySegment plays the fates that hold for one segment only.
func TestFatesBySegment(t *testing.T) {
	const ok = "resp ESME_ROK"
	for digits, want := range map[string]map[string]int{
		"28": {ok: 3, "receipt DELIVRD": 2, "receipt UNDELIV": 1},
		"29": {ok: 2, "resp ESME_RINVDSTADR": 1, "receipt DELIVRD": 2},
		"54": {ok: 3, "receipt DELIVRD": 1},
		"55": {ok: 3, "receipt DELIVRD": 2},
	} {
		c, addr := serve(t, quick)
		k := bound(t, addr)
		for i := byte(1); i <= 3; i++ {
			m := usual("257790000"+digits, "\x05\x00\x03\x2a\x03"+string(rune(i))+"part")
			m.esm = 0x40
			k.submit(m)
		}
		seen := map[string]int{}
		total := 0
		for _, n := range want {
			total += n
		}
		for range total {
			seen[k.next().say(t)]++
		}
		until(t, "all receipts confirmed", func() bool { return c.Stats().ReceiptsWaiting == 0 })
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", digits, seen, want)
		}
	}
}

// TestTable holds the table of the doc comment against Fates.
func TestTable(t *testing.T) {
	source, err := os.ReadFile("fate.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "type Fate struct")
	names := map[string]bool{}
	for i, f := range Fates() {
		if f.Digits != fmt.Sprintf("%02d", i) {
			t.Errorf("row %d has the digits %s", i, f.Digits)
		}
		if !strings.Contains(comment, f.Digits+" ") {
			t.Errorf("%s is not in the doc comment", f.Digits)
		}
		if names[f.Name] || f.Name == "" || f.Does == "" || f.Ends == "" {
			t.Errorf("%s: name %q is empty or taken, or a text is empty", f.Digits, f.Name)
		}
		names[f.Name] = true
	}
}
