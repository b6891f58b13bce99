package sms

import "testing"

// No sandbox number is valid in our plan or in libphonenumber's ranges, which begin with 2, 3, 6, 7. Each is parsed in
// every form.
func TestSandboxNumbersAreInvalid(t *testing.T) {
	plan := NewPlan("2", "3", "6", "7")
	for _, fate := range SandboxFates() {
		if _, ok := plan.Parse(string(fate.Number)); ok {
			t.Errorf("%s is a number of Burundi", fate.Number)
		}
		national := fate.Number.National()
		for _, form := range []string{string(fate.Number), fate.Number.Digits(), "00" + fate.Number.Digits(), national,
			"+257 " + national[:2] + " " + national[2:]} {
			if n, ok := ParseSandbox(form); !ok || n != fate.Number {
				t.Errorf("%q is read as %q, %v", form, n, ok)
			}
		}
		if got, ok := SandboxFateOf(fate.Number); !ok || got != fate {
			t.Errorf("%s: %+v", fate.Number, got)
		}
		if fate.Status != Sent && fate.Status != Failed || (fate.Status == Failed) != (fate.Reason != "") {
			t.Errorf("%+v is no fate", fate)
		}
	}
	for _, other := range []string{"", "01000000", "01000006", "+25701000009", "79123456", "1000001", "+25001000001",
		"o1000001"} {
		if n, ok := ParseSandbox(other); ok {
			t.Errorf("%q is %q", other, n)
		}
	}
}
