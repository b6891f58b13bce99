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
	QR     qrCode
	Codes  []string // shown once
}

// qrCode is a QR code as an SVG path.
type qrCode struct {
	Size int
	Path string
}

// twoStep is GET /account/two-step.
func (d *Dashboard) twoStep(v *visit, s *accounts.Session) {
	if data, ok := v.twoStepPage(s); ok {
		v.render(http.StatusOK, "twostep", data)
	}
}

// twoStepPage reads the page's data. On an error it writes the response and returns false.
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
		v.handleError("reading the second factor", err)
		return data, false
	}
	return data, true
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
func (d *Dashboard) turnTwoStepOn(v *visit, s *accounts.Session) {
	f := v.form()
	code := f.required("code")
	if f.ok() && !v.allowTry(tryCode, strconv.FormatInt(s.User.ID, 10)) {
		f.notice("error.tries")
	}
	if f.ok() {
		codes, err := d.rooms.Accounts.ConfirmSecondFactor(v.ctx(), s.User.ID, code)
		switch {
		case errors.Is(err, accounts.ErrWrongCode):
			f.values.Del("code")
			f.refuse("code", "code.wrong")
		case err != nil:
			v.handleError("turning the second factor on", err)
			return
		default:
			v.showCodes(codes)
			return
		}
	}
	if data, ok := v.twoStepPage(s); ok {
		v.renderForm("twostep", data, f)
	}
}

// showCodes redirects to the page that shows new recovery codes once.
func (v *visit) showCodes(codes []string) {
	if err := v.keepOnce("codes", strings.Join(codes, " ")); err != nil {
		v.handleError("keeping recovery codes", err)
		return
	}
	v.redirect("/account/two-step", "")
}

// renewCodes is POST /account/two-step/codes.
func (d *Dashboard) renewCodes(v *visit, s *accounts.Session) {
	f := v.form()
	if !v.checkCode(f, "proof", "twostep", twoStepPage{On: true}) {
		return
	}
	codes, err := d.rooms.Accounts.NewRecoveryCodes(v.ctx(), s.User.ID)
	if err != nil {
		v.handleError("making recovery codes", err)
		return
	}
	v.showCodes(codes)
}

// turnTwoStepOff is POST /account/two-step/off.
func (d *Dashboard) turnTwoStepOff(v *visit, s *accounts.Session) {
	f := v.form()
	if !v.checkCode(f, "proof", "twostep", twoStepPage{On: true}) {
		return
	}
	if err := d.rooms.Accounts.DropSecondFactor(v.ctx(), s.User.ID); err != nil {
		v.handleError("turning the second factor off", err)
		return
	}
	v.redirect("/account", "flash.twostep.off")
}
