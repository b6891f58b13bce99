package reports

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// wideOf encodes a text in UTF-16.
func wideOf(text string, order binary.ByteOrder) string {
	var out bytes.Buffer
	for _, unit := range utf16.Encode([]rune(text)) {
		_ = binary.Write(&out, order, unit)
	}
	return out.String()
}

// TestListed: a carrier's list in every form that its programs and spreadsheets write.
func TestListed(t *testing.T) {
	want := []string{"7301234567890123451", "7301234567890123452", "A3"}
	const lines = "date;message_id\n1;7301234567890123451\n2;7301234567890123452\n3;A3\n"
	tabs := strings.ReplaceAll(lines, ";", "\t")
	for name, list := range map[string]string{
		"plain": lines, "a mark": "\ufeff" + lines, "Windows": strings.ReplaceAll(lines, "\n", "\r\n"),
		"Macintosh": strings.ReplaceAll(lines, "\n", "\r"),
		"tabs":      tabs, "bars": strings.ReplaceAll(lines, ";", "|"), "no last line end": strings.TrimSpace(lines),
		"control-Z":      lines + "\x1a",
		"UTF-16, little": wideOf("\ufeff"+tabs, binary.LittleEndian), "UTF-16, big": wideOf("\ufeff"+tabs, binary.BigEndian),
		"UTF-16 without a mark": wideOf(tabs, binary.LittleEndian),
		"sep=":                  "sep=;\n" + lines, "sep= in quotes": "\"SEP=;\"\r\n" + lines,
		"titles":              "Relevé, mars 2026;\n\n;;\nOpérateur: 3 messages\n" + lines,
		"other name":          strings.Replace(lines, "message_id", "SMSC Message-ID", 1),
		"ours beside":         "id;message_id\nx;7301234567890123451\nx;7301234567890123452\nx;A3\n",
		"text cells":          "date;message_id\n1;=\"7301234567890123451\"\n2;'7301234567890123452\n3;\"=\"\"A3\"\"\"\n",
		"no heading":          "7301234567890123451,1\n7301234567890123452,2\nA3,3\n",
		"a title, no heading": "Relevé de mars 2026\n7301234567890123451,1\n7301234567890123452,2\nA3,3\n",
		"another heading":     "référence\n7301234567890123451\n7301234567890123452\nA3\n", "empty cells": lines +
			";\n4;\n5\n",
	} {
		var got []string
		if err := EachListed(strings.NewReader(list),
			func(id string) error { got = append(got, id); return nil }); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for cause, list := range map[string]string{
		"line 3 has 7.30123E+18":   "message_id\nA1\n7.30123E+18\n",
		"line 2 has 7,30123E+18":   "message_id;x\n7,30123E+18;1\n",
		"all its 2 long ids":       "message_id\n7301234567890120000\n7301234567890130000\n12\n",
		"line 2: \"2026-03-01 08":  "date,text\n2026-03-01 08:00:00,x\n2026-03-02 09:00:00,x\n",
		"line 2 has more than 655": "message_id\n" + strings.Repeat("x", maxLine+1),
	} {
		if err := EachListed(strings.NewReader(list), func(string) error { return nil }); !errors.Is(err, ErrList) ||
			!strings.Contains(err.Error(), cause) {
			t.Errorf("%s: %v", cause, err)
		}
	}
}
