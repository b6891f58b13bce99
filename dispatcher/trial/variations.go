package trial

import (
	"fmt"

	"intumwa/dispatcher/profile"
	"intumwa/smpp"
)

// variation is another value of one key, and its line of the configuration.
type variation struct {
	key, line string
	apply     func(*profile.Profile)
}

// untried are the variations to try after a refusal, by what it is about.
type untried struct {
	source, dest, form, validity, optional []variation
}

// TONs and NPIs that carriers are known to ask for. The first are the most frequent.
var (
	namePairs   = []profile.TONNPI{{TON: 5}, {}, {TON: 5, NPI: 1}, {NPI: 1}}
	numberPairs = []profile.TONNPI{{TON: 3}, {}, {NPI: 1}, {TON: 1, NPI: 1}, {TON: 6}, {TON: 2, NPI: 1}, {TON: 5}}
	destPairs   = []profile.TONNPI{{TON: 1, NPI: 1}, {}, {NPI: 1}, {TON: 2, NPI: 1}}
	destForms   = []string{"international", "plus", "zeros", "national", "trunk"} // in the order of their constants
	validities  = []string{"relative", "absolute", "none"}
)

// variations lists what may be tried instead of p for a sender.
func variations(p profile.Profile, sender string) *untried {
	u := new(untried)
	kind, _ := profile.KindOf(sender)
	add := func(list *[]variation, key, value string, apply func(*profile.Profile)) {
		*list = append(*list, variation{key, key + ": " + value, apply})
	}
	pairs := numberPairs
	if kind == profile.Alphanumeric {
		pairs = namePairs
	}
	for _, pair := range pairs {
		if pair != *p.Source.For(kind) {
			add(&u.source, "source_ton_npi", fmt.Sprintf("{%s: [%d, %d]}", kind, pair.TON, pair.NPI),
				func(p *profile.Profile) { *p.Source.For(kind) = pair })
		}
	}
	for _, pair := range destPairs {
		if pair != p.Dest {
			add(&u.dest, "dest_ton_npi", fmt.Sprintf("[%d, %d]", pair.TON, pair.NPI), func(p *profile.Profile) { p.Dest = pair })
		}
	}
	for i, word := range destForms {
		if form := profile.DestForm(i); form != p.DestForm {
			add(&u.form, "dest_form", word, func(p *profile.Profile) { p.DestForm = form })
		}
	}
	for i, word := range validities {
		if form := profile.Validity(i); form != p.Validity {
			add(&u.validity, "validity_period", word, func(p *profile.Profile) { p.Validity = form })
		}
	}
	if !p.NoReference {
		add(&u.optional, "user_message_reference", "false", func(p *profile.Profile) { p.NoReference = true })
	}
	return u
}

// after returns the next variation that may help against a refusal, false if none is left.
func (u *untried) after(status smpp.Status) (variation, bool) {
	switch status {
	case 0x0A, 0x48, 0x49: // ESME_RINVSRCADR, _RINVSRCTON, _RINVSRCNPI
		return take(&u.source)
	case 0x50, 0x51: // ESME_RINVDSTTON, _RINVDSTNPI
		return take(&u.dest)
	case 0x0B: // ESME_RINVDSTADR
		if v, ok := take(&u.form); ok {
			return v, true
		}
		return take(&u.dest)
	case 0x61, 0x62: // ESME_RINVSCHED, _RINVEXPIRY
		return take(&u.validity)
	case 0xC0, 0xC1, 0xC2, 0xC3, 0xC4: // about optional parameters
		return take(&u.optional)
	}
	return variation{}, false
}

func take(list *[]variation) (v variation, ok bool) {
	if len(*list) == 0 {
		return v, false
	}
	v, *list = (*list)[0], (*list)[1:]
	return v, true
}
