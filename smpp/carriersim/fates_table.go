package carriersim

import "strings"

// FatesTable is Fates as a table in Markdown, for documents.
func FatesTable() string {
	var table strings.Builder
	table.WriteString("| last digits | fate | what the carrier does | what the message becomes |\n|---|---|---|---|\n")
	for _, f := range Fates() {
		table.WriteString("| `" + f.Digits + "` | " + f.Name + " | " + f.Does + " | " + f.Ends + " |\n")
	}
	return table.String()
}
