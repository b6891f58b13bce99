package dashboard

import (
	"net/url"
	"strconv"
	"strings"

	"rsc.io/qr"

	"intumwa/accounts/people"
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

// twoStep is GET /account/two-step.
func (d *Dashboard) twoStep(v *visit, s *people.Session) error {
	state, err := d.rooms.SignIn.SecondFactorOf(v.ctx(), s.User.ID)
	if err != nil {
		return err
	}
	data := twoStepPage{On: state.On}
	if state.On {
		codes, err := v.takeOnce("codes")
		if err != nil {
			return err
		}
		data.Codes = strings.Fields(codes)
		return v.render("twostep", data)
	}
	if data.Secret, err = d.rooms.SignIn.BeginSecondFactor(v.ctx(), s.User.ID); err != nil {
		return err
	}
	data.QR, err = drawQR(authenticatorURL(s.User.Email, data.Secret))
	return v.page(err, "twostep", data)
}

// authenticatorURL returns the URL for authenticators: https://github.com/google/google-authenticator/wiki/Key-Uri-Format
func authenticatorURL(email, secret string) string {
	return "otpauth://totp/" + url.PathEscape("Intumwa:"+email) + "?" + url.Values{"secret": {secret}, "issuer": {"Intumwa"}}.Encode()
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
				path.WriteString("M" + strconv.Itoa(x+qrBorder) + " " + strconv.Itoa(y+qrBorder) + "h" + strconv.Itoa(run) + "v1h-" + strconv.Itoa(run) + "z")
				x += run
			}
		}
	}
	return qrCode{code.Size + 2*qrBorder, path.String()}, nil
}

// turnTwoStepOn is POST /account/two-step, with the authenticator's first code.
func (d *Dashboard) turnTwoStepOn(v *visit, s *people.Session) error {
	f := v.form()
	code := f.required("code")
	if err := f.presentPassword("present"); err != nil {
		return err
	}
	f.allow(tryCode, s.User.Email)
	if !f.ok() {
		return d.twoStep(v, s)
	}
	codes, err := d.rooms.SignIn.ConfirmSecondFactor(v.ctx(), *s, code)
	if err = f.wrongCode("code", err); err == nil && !f.ok() {
		return d.twoStep(v, s)
	}
	return v.showCodes(codes, err)
}

// showCodes redirects to the page that shows new recovery codes once.
func (v *visit) showCodes(codes []string, err error) error {
	if err == nil {
		err = v.keepOnce("codes", strings.Join(codes, " "))
	}
	return v.done(err, "/account/two-step", "")
}

// renewCodes is POST /account/two-step/codes.
func (d *Dashboard) renewCodes(v *visit, s *people.Session) error {
	if err := v.form().secondFactor("proof"); err != nil {
		return err
	}
	if !v.form().ok() {
		return d.twoStep(v, s)
	}
	return v.showCodes(d.rooms.SignIn.NewRecoveryCodes(v.ctx(), s.User.ID))
}

// turnTwoStepOff is POST /account/two-step/off.
func (d *Dashboard) turnTwoStepOff(v *visit, s *people.Session) error {
	if err := v.form().secondFactor("proof"); err != nil {
		return err
	}
	if !v.form().ok() {
		return d.twoStep(v, s)
	}
	return v.done(d.rooms.SignIn.DropSecondFactor(v.ctx(), s.User.ID), "/account", "flash.twostep.off")
}
