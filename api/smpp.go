package api

import (
	"fmt"
	"strings"

	"intumwa/accounts/keys"
	"intumwa/smpp"
	answers "intumwa/smppserver/statuses"
	"intumwa/sms"
)

// SMPP is the installation's SMPP server, for the page /docs/smpp.
type SMPP struct {
	Port string // "": it is off
	TLS  bool
}

// smppPage is what the page shows.
type smppPage struct {
	SMPP

	Limits                                                     keys.SMPPLimits
	Burst, Unanswered                                          int
	Bind, Enquire, EnquireTimeout, Inactivity, Response, Write int // seconds
	Binds, Requests                                            []smppAnswer
	Receipt, Kannel, Jasmin                                    string
}

// smppAnswer is a row of the tables of command_status.
type smppAnswer struct {
	Code, Name, Meaning string
	Again               bool
}

// receiptExample is the text of a receipt.
const receiptExample = "id:01JNA2M7Q8R9S0T1V2W3X4Y5Z6 sub:001 dlvrd:001 submit date:2603010702 done date:2603010703 " +
	"stat:DELIVRD err:000 text:"

// smppPageOf returns what the page shows in a language.
func smppPageOf(installed SMPP, language string) (p smppPage, err error) {
	p = smppPage{SMPP: installed, Limits: keys.DefaultSMPP, Burst: sms.MaxSegments, Unanswered: smpp.DefaultDeliverWindow,
		Receipt: receiptExample,
		Bind:    int(smpp.DefaultServedBind.Seconds()), Enquire: int(smpp.DefaultEnquireLink.Seconds()),
		EnquireTimeout: int(smpp.DefaultEnquireTimeout.Seconds()),
		Inactivity:     int(smpp.DefaultInactivity.Seconds()), Response: int(smpp.DefaultServedResponse.Seconds()),
		Write: int(smpp.DefaultWriteTimeout.Seconds())}
	p.Binds, p.Requests = smppAnswers(answers.Binds, language), smppAnswers(answers.Requests, language)
	own := strings.NewReplacer()
	if installed.Port != "" {
		own = strings.NewReplacer("2776", installed.Port)
		if !installed.TLS {
			own = strings.NewReplacer("2776", installed.Port, "use-ssl = true", "use-ssl = false", "ssl yes", "ssl no")
		}
	}
	for name, text := range map[string]*string{"kannel": &p.Kannel, "jasmin": &p.Jasmin} {
		raw, err := docsFiles.ReadFile("docs/samples/" + name + ".txt")
		if err != nil {
			return p, fmt.Errorf("reading a sample: %w", err)
		}
		*text = own.Replace(strings.TrimSpace(string(raw)))
	}
	return p, nil
}

func smppAnswers(rows []answers.Row, language string) (all []smppAnswer) {
	for _, r := range rows {
		a := smppAnswer{Code: fmt.Sprintf("0x%02X", uint32(r.Status)), Name: r.Status.String(),
			Meaning: words{r.EN, r.FR}.of(language), Again: r.Again}
		if strings.HasPrefix(a.Name, "0x") { // our own: named as in X-Error-Code
			a.Name = codeOf(sms.Refusal{Reason: r.Reasons[0]})
		}
		all = append(all, a)
	}
	return all
}
