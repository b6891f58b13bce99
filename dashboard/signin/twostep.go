package signin

import (
	"net/url"
	"strconv"
	"strings"

	"rsc.io/qr"

	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

type twoStepPage struct {
	On     bool
	Secret string
	QR     qrCode
	Codes  []string // shown once
}

// qrCode is a QR code as an SVG path.
type qrCode struct {
	Size int
	Path string
}

// TwoStep is GET /account/two-step.
func (ps *Pages) TwoStep(v *web.Visit, s *people.Session) error {
	state, err := ps.Deps.SignIn.SecondFactorOf(v.Ctx(), s.User.ID)
	if err != nil {
		return err
	}
	data := twoStepPage{On: state.On}
	if state.On {
		codes, err := v.TakeOnce("codes")
		if err != nil {
			return err
		}
		data.Codes = strings.Fields(codes)
		return v.Render("twostep", data)
	}
	if data.Secret, err = ps.Deps.SignIn.BeginSecondFactor(v.Ctx(), s.User.ID); err != nil {
		return err
	}
	data.QR, err = drawQR(authenticatorURL(s.User.Email, data.Secret))
	return v.Page(err, "twostep", data)
}

// authenticatorURL returns the URL for authenticators:
// https://github.com/google/google-authenticator/wiki/Key-Uri-Format
func authenticatorURL(email, secret string) string {
	return "otpauth://totp/" + url.PathEscape("Intumwa:"+email) + "?" +
		url.Values{"secret": {secret}, "issuer": {"Intumwa"}}.Encode()
}

// qrBorder is the empty border that scanners need, in modules.
const qrBorder = 4

func drawQR(text string) (qrCode, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return qrCode{}, err
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for x+run < code.Size && code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				path.WriteString("M" + strconv.Itoa(x+qrBorder) + " " + strconv.Itoa(y+qrBorder) + "h" + strconv.Itoa(run) +
					"v1h-" + strconv.Itoa(run) + "z")
				x += run
			}
		}
	}
	return qrCode{code.Size + 2*qrBorder, path.String()}, nil
}

// TurnTwoStepOn is POST /account/two-step, with the authenticator's first code.
func (ps *Pages) TurnTwoStepOn(v *web.Visit, s *people.Session) error {
	f := v.Form()
	code := f.Required("code")
	if err := ps.presentPassword(f, "present"); err != nil {
		return err
	}
	ps.allow(f, tryCode, s.User.Email)
	if !f.OK() {
		return ps.TwoStep(v, s)
	}
	codes, err := ps.Deps.SignIn.ConfirmSecondFactor(v.Ctx(), *s, code)
	if err = wrongCode(f, "code", err); err == nil && !f.OK() {
		return ps.TwoStep(v, s)
	}
	return showCodes(v, codes, err)
}

// showCodes redirects to the page that shows new recovery codes once.
func showCodes(v *web.Visit, codes []string, err error) error {
	if err == nil {
		err = v.KeepOnce("codes", strings.Join(codes, " "))
	}
	return v.Done(err, "/account/two-step", "")
}

// RenewCodes is POST /account/two-step/codes.
func (ps *Pages) RenewCodes(v *web.Visit, s *people.Session) error {
	if err := ps.secondFactor(v.Form(), "proof"); err != nil {
		return err
	}
	if !v.Form().OK() {
		return ps.TwoStep(v, s)
	}
	codes, err := ps.Deps.SignIn.NewRecoveryCodes(v.Ctx(), s.User.ID)
	return showCodes(v, codes, err)
}

// TurnTwoStepOff is POST /account/two-step/off.
func (ps *Pages) TurnTwoStepOff(v *web.Visit, s *people.Session) error {
	if err := ps.secondFactor(v.Form(), "proof"); err != nil {
		return err
	}
	if !v.Form().OK() {
		return ps.TwoStep(v, s)
	}
	return v.Done(ps.Deps.SignIn.DropSecondFactor(v.Ctx(), s.User.ID), "/account", "flash.twostep.off")
}
