package dashboard

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// A reader of what Chromium prints: enough of ISO 32000 for its pages' texts. Objects are written one after the other,
// streams are deflated or plain, texts are glyphs of fonts that say which characters those are (ToUnicode).

var (
	pdfObject  = regexp.MustCompile(`(?:^|\s)(\d+) 0 obj\b`)
	pdfLength  = regexp.MustCompile(`/Length (\d+)`)
	pdfRef     = regexp.MustCompile(`(\d+) 0 R`)
	pdfKids    = regexp.MustCompile(`/Kids\s*\[([^\]]*)\]`)
	pdfContent = regexp.MustCompile(`/Contents (\d+) 0 R`)
	pdfFonts   = regexp.MustCompile(`/Font\s*<<([^>]*)>>`)
	pdfFont    = regexp.MustCompile(`/(\w+) (\d+) 0 R`)
	pdfUnicode = regexp.MustCompile(`/ToUnicode (\d+) 0 R`)
	pdfShown   = regexp.MustCompile(`/(\w+) [\d.]+ Tf|<([0-9A-Fa-f]*)>`)
	pdfMapped  = regexp.MustCompile(`(?s)begin(bfchar|bfrange)(.*?)endbf`)
	pdfCodes   = regexp.MustCompile(`<([0-9A-Fa-f]+)>`)
)

type pdfThing struct{ dict, stream string }

// pdfPages are the texts of a document's pages, without white space.
func pdfPages(t *testing.T, document []byte) (texts []string) {
	t.Helper()
	things := map[string]pdfThing{}
	for rest := document; ; {
		at := pdfObject.FindSubmatchIndex(rest)
		if at == nil {
			break
		}
		id := string(rest[at[2]:at[3]])
		rest = rest[at[1]:]
		end, stream := bytes.Index(rest, []byte("endobj")), bytes.Index(rest, []byte("stream\n"))
		if stream < 0 || stream > end {
			things[id] = pdfThing{dict: string(rest[:end])}
			rest = rest[end:]
			continue
		}
		thing := pdfThing{dict: string(rest[:stream])}
		length, err := strconv.Atoi(pdfLength.FindStringSubmatch(thing.dict)[1])
		if err != nil {
			t.Fatal(err)
		}
		octets := rest[stream+len("stream\n"):][:length]
		if strings.Contains(thing.dict, "/FlateDecode") {
			plain, err := zlib.NewReader(bytes.NewReader(octets))
			if err == nil {
				octets, err = io.ReadAll(plain)
			}
			if err != nil {
				t.Fatalf("stream %s: %v", id, err)
			}
		}
		thing.stream = string(octets)
		things[id] = thing
		rest = rest[stream+len("stream\n")+length:]
	}
	var walk func(id string)
	walk = func(id string) {
		dict := things[id].dict
		if kids := pdfKids.FindStringSubmatch(dict); kids != nil && strings.Contains(dict, "/Type /Pages") {
			for _, kid := range pdfRef.FindAllStringSubmatch(kids[1], -1) {
				walk(kid[1])
			}
			return
		}
		texts = append(texts, pdfText(t, things, dict))
	}
	for id, thing := range things {
		if strings.Contains(thing.dict, "/Type /Catalog") {
			walk(regexp.MustCompile(`/Pages (\d+) 0 R`).FindStringSubmatch(things[id].dict)[1])
		}
	}
	return texts
}

func pdfText(t *testing.T, things map[string]pdfThing, page string) string {
	t.Helper()
	fonts := map[string]map[string]string{}
	for _, list := range pdfFonts.FindAllStringSubmatch(page, -1) {
		for _, f := range pdfFont.FindAllStringSubmatch(list[1], -1) {
			fonts[f[1]] = map[string]string{}
			if says := pdfUnicode.FindStringSubmatch(things[f[2]].dict); says != nil {
				fonts[f[1]] = pdfMap(t, things[says[1]].stream)
			}
		}
	}
	var text strings.Builder
	var font map[string]string
	for _, shown := range pdfShown.FindAllStringSubmatch(things[pdfContent.FindStringSubmatch(page)[1]].stream, -1) {
		if shown[1] != "" {
			font = fonts[shown[1]]
			continue
		}
		for glyphs := strings.ToUpper(shown[2]); len(glyphs) >= 4; glyphs = glyphs[4:] {
			text.WriteString(font[glyphs[:4]])
		}
	}
	return dense(text.String())
}

// pdfMap is which characters a font's glyphs are.
func pdfMap(t *testing.T, cmap string) map[string]string {
	t.Helper()
	known := map[string]string{}
	for _, part := range pdfMapped.FindAllStringSubmatch(cmap, -1) {
		codes := pdfCodes.FindAllStringSubmatch(part[2], -1)
		if part[1] == "bfchar" {
			for pair := range slices.Chunk(codes, 2) {
				known[strings.ToUpper(pair[0][1])] = pdfString(t, pair[1][1])
			}
			continue
		}
		for three := range slices.Chunk(codes, 3) {
			first, _ := strconv.ParseUint(three[0][1], 16, 16)
			last, _ := strconv.ParseUint(three[1][1], 16, 16)
			runes := []rune(pdfString(t, three[2][1]))
			for glyph := first; glyph <= last; glyph++ {
				known[strings.ToUpper(hex.EncodeToString([]byte{byte(glyph >> 8), byte(glyph)}))] = string(runes)
				runes[len(runes)-1]++
			}
		}
	}
	return known
}

func pdfString(t *testing.T, octets string) string {
	t.Helper()
	raw, err := hex.DecodeString(octets)
	if err != nil {
		t.Fatal(err)
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return string(utf16.Decode(units))
}

// dense is a text without white space, in which lines may be broken anywhere.
func dense(text string) string { return strings.Join(strings.Fields(text), "") }
