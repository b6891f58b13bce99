package dashboard

import "strings"

// The words by which browsers and systems give themselves away, the telling ones first: every browser claims to be
// several others.
var (
	browsers = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser", "Samsung Internet"}, {"Firefox", "Firefox"},
		{"FxiOS", "Firefox"}, {"CriOS", "Chrome"}, {"Chrome", "Chrome"}, {"Safari", "Safari"}, {"curl", "curl"}}
	systems = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// deviceName is a browser's User-Agent in two words that its owner knows; empty when it says nothing known.
func deviceName(agent string) string {
	var words []string
	for _, table := range [][][2]string{browsers, systems} {
		for _, row := range table {
			if strings.Contains(agent, row[0]) {
				words = append(words, row[1])
				break
			}
		}
	}
	return strings.Join(words, ", ")
}
