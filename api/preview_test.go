package api

import (
	"strings"
	"testing"
)

func TestPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for _, c := range []struct {
		as, body string
		status   int
		want     string
	}{
		{"live", `{"message":"Urakoze"}`, 200,
			`{"encoding":"gsm7","characters":7,"segments":1,"cost":1,"unicode_characters":[]}`},
		{"live", object("message", long(161)), 200,
			`{"encoding":"gsm7","characters":161,"segments":2,"cost":2,"unicode_characters":[]}`},
		{"live", object("message", "ça va? œuf ça 😀"), 200,
			`{"encoding":"ucs2","characters":15,"segments":1,"cost":1,"unicode_characters":["ç","œ","😀"]}`},
		{"live", `{"template":"Code {{ code }}","variables":{"code":"12"}}`, 200,
			`{"encoding":"gsm7","characters":7,"segments":1,"cost":1,"unicode_characters":[]}`},
		{"live", `{"template":"Bonjour"}`, 200,
			`{"encoding":"gsm7","characters":7,"segments":1,"cost":1,"unicode_characters":[]}`},
		{"live", `{"template":"{{code}}","message":"abc","variables":[]}`, 200,
			`{"encoding":"gsm7","characters":3,"segments":1,"cost":1,"unicode_characters":[]}`},
		{"new", `{"message":"x"}`, 200, `{"encoding":"gsm7","characters":1,"segments":1,"cost":1,"unicode_characters":[]}`},
		{"live", `{"template":"{{code}} {{a}}","variables":{}}`, 400,
			messageJSON("Recipient #1 is missing required template variables: code, a.")},
		{"live", `{"template":"{{code}}","variables":{"code":null}}`, 400, messageJSON("Recipient #1's message is empty.")},
		{"live", object("template", strings.Repeat("{{a}}", 120), "variables", vars{"a": strings.Repeat("ж", 255)}), 400,
			messageJSON("Recipient #1's message is too long.")},
		{"live", `{}`, 422, failsFirst("message", "The message content is required.")},
		{"live", object("message", long(601)), 422, failsFirst("message", "The message must not exceed 600 characters.")},
		{"live", object("template", long(601)), 422,
			failsFirst("template", "The template field must not exceed 600 characters.")},
		{"live", `{"template":" "}`, 422, failsFirst("template", "The template field is required.")},
		{"live", `{"template":"x","variables":5}`, 422, failsFirst("variables", "The variables field is required.")},
		{"live", `{"template":"{{code}}","variables":{"code":5}}`, 422,
			failsFirst("variables.code", "The variables.code field must be a string.")},
		{"live", `{"template":"{{code}}","variables":{"code":"` + long(256) + `"}}`, 422,
			failsFirst("variables.code", "The variables.code field must not exceed 255 characters.")},
		{"live", `{`, 400, messageJSON("The request body is not valid JSON.")},
		{"nocompany", `{"message":"x"}`, 400, messageJSON("You must create a company before sending messages.")},
		{"", `{"message":"x"}`, 401, messageJSON("Unauthenticated.")},
	} {
		got := w.do(c.as, "POST", "/v1/sms/preview", c.body)
		if got.status != c.status {
			t.Errorf("%s: status %d", c.body, got.status)
		}
		sameJSON(t, got.body, c.want)
	}
	if got := w.recorded(); got != [4]int64{} {
		t.Errorf("a preview left something: %v", got)
	}
}

// With smart encoding the preview shows the text that would be sent. A text that would become empty is sent unchanged.
func TestSmartEncoding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.exec(`UPDATE companies SET smart_encoding = true WHERE id = $1`, w.company["other"])
	got := w.do("other", "POST", "/v1/sms/preview", object("message", "l\u2019été « ça »"))
	sameJSON(t, got.body, `{"encoding":"gsm7","characters":12,"segments":1,"cost":1,"unicode_characters":[]}`)
	w.sent("other", single("79123456", "ACME", "l\u2019été « ça »"))
	w.sent("other", single("79123456", "ACME", "\u200b"))
	if n := w.count(`SELECT count(*) FROM messages WHERE body IN ('l''été " ca "', E'\u200b') AND segments = 1`); n != 2 {
		t.Errorf("%d of 2 messages are as they should be", n)
	}
}
