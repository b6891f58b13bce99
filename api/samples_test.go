package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/webhooks"
)

// verifiers read cases from standard input and print a JSON list of verdicts.
var verifiers = map[string]string{
	"php": `
$out = [];
foreach (json_decode(stream_get_contents(STDIN), true) as $c) {
    $out[] = verify($c['Whsec'], $c['Headers'], $c['Body'], $c['Now']);
}
echo json_encode($out);
`,
	"js": `
const cases = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map((c) => verify(c.Whsec, c.Headers, Buffer.from(c.Body), c.Now))));
`,
	"py": `
import json
import sys

# Some frameworks make a surrogate of an octet that is not ASCII.
assert not verify("whsec_", {"x-webhook-signature": "\udce9", "webhook-signature": "v1,\udce9", "webhook-id": ` +
		`"\udce9"}, b"", 0)
print(json.dumps([verify(c["Whsec"], c["Headers"], c["Body"].encode(), c["Now"]) for c in json.load(sys.stdin)]))
`,
	"cs": `
static class Cases
{
    static void Main()
    {
        var verdicts = new List<string>();
        for (string line; !string.IsNullOrEmpty(line = Console.In.ReadLine());)
        {
            var f = line.Split(' ').Select(text => Encoding.UTF8.GetString(Convert.FromBase64String(text))).ToArray();
            var headers = new Dictionary<string, string>(StringComparer.OrdinalIgnoreCase);
            for (var i = 3; i < f.Length; i += 2) headers[f[i]] = f[i + 1];
            verdicts.Add(Webhook.Verify(f[0], headers, Encoding.UTF8.GetBytes(f[1]), long.Parse(f[2]))
                ? "true" : "false");
        }
        Console.WriteLine("[" + string.Join(",", verdicts) + "]");
    }
}
`,
	"go": `
func main() {
	var cases []struct {
		Whsec, Body string
		Headers      map[string]string
		Now          int64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	out := []bool{}
	for _, c := range cases {
		header := http.Header{}
		for name, text := range c.Headers {
			header.Set(name, text)
		}
		out = append(out, Verify(c.Whsec, header, []byte(c.Body), time.Unix(c.Now, 0)))
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
`,
}

// javaCases reads lines of fields in base64, as C# does: neither has JSON in its standard library here.
const javaCases = `
class Cases {
    public static void main(String[] args) throws Exception {
        java.util.List<Boolean> out = new java.util.ArrayList<>();
        for (String line : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
            String[] f = line.split(" ", -1);
            for (int i = 0; i < f.length; i++) {
                f[i] = new String(Base64.getDecoder().decode(f[i]), StandardCharsets.UTF_8);
            }
            Map<String, String> headers = new java.util.HashMap<>();
            for (int i = 3; i < f.length; i += 2) {
                headers.put(f[i], f[i + 1]);
            }
            out.add(Webhook.verify(f[0], headers, f[1].getBytes(StandardCharsets.UTF_8), Long.parseLong(f[2])));
        }
        System.out.println(out);
    }
}

`

// casesInLines has the cases for javaCases.
func casesInLines(cases []verifyCase) []byte {
	var out bytes.Buffer
	for _, c := range cases {
		fields := []string{c.Whsec, c.Body, strconv.FormatInt(c.Now, 10)}
		for name, text := range c.Headers {
			fields = append(fields, name, text)
		}
		for i, field := range fields {
			fields[i] = base64.StdEncoding.EncodeToString([]byte(field))
		}
		out.WriteString(strings.Join(fields, " ") + "\n")
	}
	return out.Bytes()
}

type verifyCase struct {
	Whsec, Body string
	Headers     map[string]string
	Now         int64
}

// verifyCases returns the published vectors, which are genuine, and forgeries made from them.
func verifyCases(t *testing.T) (cases []verifyCase, want []bool) {
	t.Helper()
	vectors, err := webhooks.TestVectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		at, err := strconv.ParseInt(v.Timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		genuine := func() verifyCase {
			return verifyCase{v.Secret, v.Body, map[string]string{"x-webhook-event": v.Event, "x-webhook-signature": v.Signature,
				"webhook-id": v.ID, "webhook-timestamp": v.Timestamp, "webhook-signature": v.Standard}, at + 30}
		}
		add := func(verdict bool, change func(c *verifyCase)) {
			c := genuine()
			change(&c)
			cases, want = append(cases, c), append(want, verdict)
		}
		add(true, func(*verifyCase) {})
		add(false, func(c *verifyCase) { c.Body += " " })
		add(false, func(c *verifyCase) { c.Whsec = "whsec_" + strings.Repeat("A", 43) + "=" })
		add(false, func(c *verifyCase) { c.Now = at + 301 })
		add(false, func(c *verifyCase) { c.Now = at - 301 })
		add(false, func(c *verifyCase) { c.Headers["webhook-id"] += "x" })
		add(false, func(c *verifyCase) { c.Headers["webhook-timestamp"] = strconv.FormatInt(at+1, 10) })
		// During a rotation there are two signatures, one by this secret.
		strange := "v1," + strings.Repeat("B", 43) + "="
		for _, both := range []string{v.Standard + " " + strange, strange + " " + v.Standard} {
			add(true, func(c *verifyCase) { c.Headers["webhook-signature"] = both })
			add(true, func(c *verifyCase) {
				c.Headers["webhook-signature"], c.Headers["x-webhook-signature"] = both, strings.Repeat("0", 64)
			})
			add(false, func(c *verifyCase) { c.Headers["webhook-signature"], c.Body = both, c.Body+" " })
		}
		add(false, func(c *verifyCase) { c.Headers["webhook-signature"] = strange + " " + strange })
		// Header values are bytes: one that is not ASCII is refused like any forgery.
		for _, name := range []string{"x-webhook-signature", "webhook-signature", "webhook-id", "webhook-timestamp"} {
			add(false, func(c *verifyCase) { c.Headers[name] = strings.Repeat("é", 32) })
		}
		for name := range genuine().Headers {
			if strings.Contains(name, "signature") {
				add(false, func(c *verifyCase) { delete(c.Headers, name) })
				add(false, func(c *verifyCase) { c.Headers[name] = strings.ToUpper(c.Headers[name]) })
			}
		}
	}
	return cases, want
}

func TestVerifySamples(t *testing.T) {
	p, err := madePages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	cases, want := verifyCases(t)
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.editions["en"].content.Verify {
		t.Run(s.Name, func(t *testing.T) {
			if s.Name == "go" {
				s.Text = strings.Replace(s.Text, "package webhook", "package main", 1)
				s.Text = strings.Replace(s.Text, "import (\n", "import (\n\t\"encoding/json\"\n\t\"os\"\n", 1)
			}
			input := input
			switch s.Name {
			case "java": // runs the first class of a file
				s.Text = strings.Replace(s.Text, "class Webhook", javaCases+"class Webhook", 1)
				input = casesInLines(cases)
			case "cs":
				input = casesInLines(cases)
			}
			file, args := runnable(t, s, verifiers)
			cmd := exec.Command(args[0], append(args[1:], file)...)
			cmd.Stdin = bytes.NewReader(input)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var got []bool
			if err := json.Unmarshal(out, &got); err != nil || len(got) != len(want) {
				t.Fatalf("%v: %s", err, out)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("case %d is %v, not %v: %+v", i, got[i], want[i], cases[i])
				}
			}
		})
	}
}

// The calculator and the gateway count alike.
func TestSegmentCalculator(t *testing.T) {
	node := testenv.Tool(t, "node")
	const seed1, seed2 = 20260301, 1
	random := rand.New(rand.NewPCG(seed1, seed2))
	alphabets := [][]rune{[]rune("abcdefghijklmnopqrstuvwxyz ÀÉéèùìòÇØøÅåΔΦΓΛΩΠΨΣΘΞÆæßÄÖÑÜäöñüà§¿¡¤\n\r@£$¥_"),
		[]rune("a{}[]~|^\\€\f"), []rune("abçêœ’ж"), []rune("a😀👩‍👩‍👧日本")}
	texts := []string{"", " ", long(160), long(161), long(306), long(307), strings.Repeat("€", 80),
		strings.Repeat("€", 81), "a" + strings.Repeat("€", 153),
		strings.Repeat("ж", 70), strings.Repeat("ж", 71), "ж" + strings.Repeat("😀", 67), "\u001b", "\u0000", "Ω\u2126", "ç"}
	for r := rune(0); r < 0x500; r++ {
		texts = append(texts, string(r))
	}
	for range 2000 {
		alphabet := alphabets[random.IntN(len(alphabets))]
		text := make([]rune, random.IntN(700))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		texts = append(texts, string(text))
	}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e", `
		const { measure } = require('./docs/segments.js');
		console.log(JSON.stringify(JSON.parse(require('node:fs').readFileSync(0, 'utf8')).map(measure)));`)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Encoding                    string
		Characters, Units, Segments int
		Unicode                     []string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		want := sms.Measure(text)
		g := got[i]
		if g.Encoding != want.Encoding.String() || g.Characters != want.Characters || g.Units != want.Units ||
			g.Segments != want.Segments ||
			strings.Join(g.Unicode, "") != strings.Join(sms.UnicodeCharacters(text), "") {
			t.Errorf("%q: %+v, not %+v", text, g, want)
		}
	}
}
