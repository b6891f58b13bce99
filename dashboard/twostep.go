package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"rsc.io/qr"

	"intumwa/accounts"
)

type twoStepPage struct {
	On     bool
	Secret string
	QR     square
	Codes  []string // shown once
}

// square is a QR code as a path of SVG.
type square struct {
	Size int
	Path string
}

// twoStep is GET /account/two-step.
func (d *Dashboard) twoStep(v *visit, s *accounts.Session) {
	if data, ok := v.twoStepPage(s); ok {
		v.render(http.StatusOK, "twostep", data)
	}
}

// twoStepPage is false when it has answered for a failure.
func (v *visit) twoStepPage(s *accounts.Session) (data twoStepPage, ok bool) {
	a := v.d.rooms.Accounts
	state, err := a.SecondFactorOf(v.ctx(), s.User.ID)
	if err == nil && state.On {
		var codes string
		if codes, err = v.takeOnce("codes"); codes != "" {
			data.Codes = strings.Fields(codes)
		}
		data.On = true
	} else if err == nil {
		data.Secret, err = a.BeginSecondFactor(v.ctx(), s.User.ID)
		if err == nil {
			data.QR, err = drawQR(authenticatorURL(s.User.Email, data.Secret))
		}
	}
	if err != nil {
		v.fail("reading the second factor", err)
		return data, false
	}
	return data, true
}

// authenticatorURL is what an authenticator reads: https://github.com/google/google-authenticator/wiki/Key-Uri-Format
func authenticatorURL(email, secret string) string {
	return "otpauth://totp/" + url.PathEscape("Intumwa:"+email) + "?" + url.Values{"secret": {secret}, "issuer": {"Intumwa"}}.Encode()
}

// quiet is the empty border that readers need, in modules.
const quiet = 4

func drawQR(text string) (square, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return square{}, err
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for x+run < code.Size && code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				path.WriteString("M" + strconv.Itoa(x+quiet) + " " + strconv.Itoa(y+quiet) + "h" + strconv.Itoa(run) + "v1h-" + strconv.Itoa(run) + "z")
				x += run
			}
		}
	}
	return square{code.Size + 2*quiet, path.String()}, nil
}

// turnTwoStepOn is POST /account/two-step: the authenticator's first code.
func (d *Dashboard) turnTwoStepOn(v *visit, s *accounts.Session) {
	f := v.form()
	if f == nil {
		return
	}
	code := f.required("code")
	if f.ok() && !v.mayTry("code", strconv.FormatInt(s.User.ID, 10)) {
		f.notice("error.tries")
	}
	if f.ok() {
		codes, err := d.rooms.Accounts.ConfirmSecondFactor(v.ctx(), s.User.ID, code)
		switch {
		case errors.Is(err, accounts.ErrWrongCode):
			f.values.Del("code")
			f.refuse("code", "code.wrong")
		case err != nil:
			v.fail("turning the second factor on", err)
			return
		default:
			v.showCodes(codes)
			return
		}
	}
	if data, ok := v.twoStepPage(s); ok {
		v.again("twostep", data, f)
	}
}

// showCodes goes to the page that shows new recovery codes once.
func (v *visit) showCodes(codes []string) {
	if err := v.keepOnce("codes", strings.Join(codes, " ")); err != nil {
		v.fail("keeping recovery codes", err)
		return
	}
	v.redirect("/account/two-step", "")
}

// renewCodes is POST /account/two-step/codes.
func (d *Dashboard) renewCodes(v *visit, s *accounts.Session) {
	f := v.form()
	if f == nil || !v.rightCode(f, "proof", "twostep", twoStepPage{On: true}) {
		return
	}
	codes, err := d.rooms.Accounts.NewRecoveryCodes(v.ctx(), s.User.ID)
	if err != nil {
		v.fail("making recovery codes", err)
		return
	}
	v.showCodes(codes)
}

// turnTwoStepOff is POST /account/two-step/off.
func (d *Dashboard) turnTwoStepOff(v *visit, s *accounts.Session) {
	f := v.form()
	if f == nil || !v.rightCode(f, "proof", "twostep", twoStepPage{On: true}) {
		return
	}
	if err := d.rooms.Accounts.DropSecondFactor(v.ctx(), s.User.ID); err != nil {
		v.fail("turning the second factor off", err)
		return
	}
	v.redirect("/account", "flash.twostep.off")
}
