package senders

import "testing"

// TestLooksLike: a sender name that reads like that of a carrier, bank, wallet or authority is found, whatever its
// case, digits and common words.
func TestLooksLike(t *testing.T) {
	for _, try := range []struct{ name, like, kind string }{
		{"LUMICASH", "Lumicash", KnownWallet}, {"Lum1cash", "Lumicash", KnownWallet}, {"lumi-cash", "Lumicash", KnownWallet},
		{"IUMlCA5H", "Lumicash", KnownWallet},
		{"LumicashBI", "Lumicash", KnownWallet}, {"Ec0Cash", "EcoCash", KnownWallet}, {"ENOTI", "eNoti", KnownWallet},
		{"MPESA", "M-Pesa", KnownWallet},
		{"LUM1TEL", "Lumitel", KnownCarrier}, {"LEO", "Leo", KnownCarrier}, {"1E0", "Leo", KnownCarrier},
		{"LeoInfo", "Leo", KnownCarrier}, {"0NATEL", "Onatel", KnownCarrier},
		{"BANC0BU", "Bancobu", KnownBank}, {"bcb", "BCB", KnownBank}, {"8CB", "BCB", KnownBank},
		{"BCBALERT", "BCB", KnownBank}, {"InfoKCB", "KCB", KnownBank}, {"CRDBBANK", "CRDB", KnownBank},
		{"OBR", "OBR", KnownAuthority}, {"0BR", "OBR", KnownAuthority}, {"BRBNEWS", "BRB", KnownAuthority},
		{"REGIDES0", "Regideso", KnownAuthority},
		{"ISOKO", "", ""}, {"LEONARD", "", ""}, {"Cleo", "", ""}, {"SmartShop", "", ""}, {"OBRIEN", "", ""}, {"OBR9", "", ""},
		{"Poster", "", ""}, {"INFO", "", ""}, {"", "", ""},
	} {
		known, ok := LooksLike(try.name)
		if ok != (try.like != "") || known != (Known{try.like, try.kind}) {
			t.Errorf("%s looks like %v (%v), want %s", try.name, known, ok, try.like)
		}
	}
}
