package senders

import "strings"

// Kinds of known names.
const (
	KnownCarrier   = "carrier"
	KnownBank      = "bank"
	KnownWallet    = "wallet"
	KnownAuthority = "authority"
)

// Known is a name that recipients trust with money or data.
type Known struct{ Name, Kind string }

// knownNames are those of Burundi, and of wallets in neighbouring countries.
var knownNames = []Known{
	{"Econet", KnownCarrier}, {"Leo", KnownCarrier}, {"Lumitel", KnownCarrier}, {"Viettel", KnownCarrier},
	{"Onatel", KnownCarrier},
	{"Onamob", KnownCarrier}, {"Smart", KnownCarrier}, {"Ucom", KnownCarrier}, {"Airtel", KnownCarrier},
	{"Vodacom", KnownCarrier}, {"MTN", KnownCarrier},

	{"EcoCash", KnownWallet}, {"Lumicash", KnownWallet}, {"Onacash", KnownWallet}, {"eNoti", KnownWallet},
	{"iHela", KnownWallet},
	{"M-Pesa", KnownWallet}, {"MoMo", KnownWallet}, {"PayPal", KnownWallet},

	{"Bancobu", KnownBank}, {"BCB", KnownBank}, {"BBCI", KnownBank}, {"BGF", KnownBank}, {"IBB", KnownBank},
	{"Interbank", KnownBank},
	{"Finbank", KnownBank}, {"Ecobank", KnownBank}, {"KCB", KnownBank}, {"CRDB", KnownBank}, {"DTB", KnownBank},
	{"BCAB", KnownBank},
	{"BHB", KnownBank}, {"BNDE", KnownBank}, {"BIJE", KnownBank}, {"BIDF", KnownBank}, {"COOPEC", KnownBank},
	{"Cecm", KnownBank}, {"Ucode", KnownBank},

	{"BRB", KnownAuthority}, {"OBR", KnownAuthority}, {"ARCT", KnownAuthority}, {"INSS", KnownAuthority},
	{"Regideso", KnownAuthority},
	{"RNP", KnownAuthority}, {"Poste", KnownAuthority}, {"Police", KnownAuthority},
}

// commonWords may accompany a short name: BCBINFO.
var commonWords = strings.Fields(
	`info infos alert alerte alertes sms otp code notif promo news service bank banque burundi bi bdi bu cash money ` +
		`pay mobile net online plus client clients`)

// shortKnown is the length up to which a known name occurs in other words by chance: LEO in LEONARD. Such a name
// matches as a whole, or with a common word.
const shortKnown = 5

// foldLikeness maps characters that look alike on a phone to one of them.
var foldLikeness = strings.NewReplacer("0", "o", "1", "i", "l", "i", "3", "e", "4", "a", "5", "s", "8", "b")

// foldName returns a name's letters and digits, without case.
func foldName(name string) string {
	return foldLikeness.Replace(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(name)))
}

// LooksLike returns the carrier, bank, wallet or authority that recipients may take for the owner of a sender name. It
// warns administrators, who may still approve the name: the company may be the owner.
func LooksLike(name string) (known Known, ok bool) {
	folded := foldName(name)
	for _, known = range knownNames {
		house := foldName(known.Name)
		if folded == house || len(house) > shortKnown && strings.Contains(folded, house) {
			return known, true
		}
		if len(house) > shortKnown {
			continue
		}
		for _, word := range commonWords {
			if word = foldName(word); folded == house+word || folded == word+house {
				return known, true
			}
		}
	}
	return Known{}, false
}
