package receipts

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// compare compares lists and returns what only each has, sorted.
func compare(t *testing.T, format Format, ours, theirs []string) (found Compared, onlyOurs, onlyTheirs []string) {
	t.Helper()
	c, err := NewComparison(t.TempDir(), format)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ours {
		if err := c.Ours(Key(id), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range theirs {
		if err := c.Theirs(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Result(func(f Compared) error { found = f; return nil },
		func(text string) error { onlyOurs = append(onlyOurs, text); return nil },
		func(id string) error { onlyTheirs = append(onlyTheirs, id); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	slices.Sort(onlyOurs)
	slices.Sort(onlyTheirs)
	if found.OnlyOurs != int64(len(onlyOurs)) || found.OnlyTheirs != int64(len(onlyTheirs)) ||
		found.Both != int64(len(ours)-len(onlyOurs)) {
		t.Errorf("%+v of %d and %d", found, len(ours), len(theirs))
	}
	return found, onlyOurs, onlyTheirs
}

// TestComparison: lists in each form, in one form or mixed, with ids that come twice or count from 1.
func TestComparison(t *testing.T) {
	many := func(n int, form string) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf(form, i+1))
		}
		return ids
	}
	for _, row := range []struct {
		name         string
		format       Format
		ours, theirs []string
		onlyOurs     string
		onlyTheirs   string
		read         Format
	}{
		{"as written", Auto, []string{"A1B2", "00C3", "d4"}, []string{"a1b2", `"C3"`, "0xD4"}, "", "", Same},
		{"decimal", Auto, []string{"1A2B3C4D", "1A2B3C4E"}, []string{"439041101", "0439041103"}, "1A2B3C4E", "0439041103",
			HexToDecimal},
		{"hexadecimal", DecimalToHex, []string{"439041101", "439041102"}, []string{"1A2B3C4D", "1a2b3c4f"}, "439041102",
			"1a2b3c4f", DecimalToHex},
		{"counting from 1, in decimal", Auto, many(2000, "%X"), many(2001, "%d")[:2000], "", "", HexToDecimal},
		{"one more and one less, counting from 1", Auto, slices.Delete(many(2000, "%X"), 15, 16), many(2001, "%d")[1:], "1",
			"16 2001", HexToDecimal},
		{"mixed", Auto, []string{"1A2B3C4D", "1A2B3C4E", "1A2B3C4F"}, []string{"439041101", "1A2B3C4E", "1a2b3c4f"}, "", "",
			HexToDecimal},
		{"twice in the list", Same, []string{"A1", "A2"}, []string{"A1", "A1", "A2"}, "", "A1", Same},
		{"twice with us", Same, []string{"A1", "A1"}, []string{"A1"}, "A1", "", Same},
		{"with the number of the part", Auto, []string{"7FCA1", "7FCA2"}, []string{"7FCA1-1", "7FCA2-1"}, "", "", Same},
		{"not an id", Auto, []string{"A1", ""}, []string{"", "?", "é\x00"}, " A1", " ? é\x00", Same},
		{"nothing", HexToDecimal, nil, nil, "", "", HexToDecimal},
	} {
		t.Run(row.name, func(t *testing.T) {
			found, ours, theirs := compare(t, row.format, row.ours, row.theirs)
			if strings.Join(ours, " ") != row.onlyOurs || strings.Join(theirs, " ") != row.onlyTheirs ||
				found.Format != row.read {
				t.Errorf("only ours %q, only theirs %q, read as %s", ours, theirs, found.Format)
			}
		})
	}
}

// TestComparisonIsBounded: the memory does not grow with the lists.
func TestComparisonIsBounded(t *testing.T) {
	const n = 20_000
	c, err := NewComparison(t.TempDir(), HexToDecimal)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for i := range n {
		if err := c.Ours(Key(strconv.FormatInt(int64(1<<40+2*i), 16)), ""); err != nil {
			t.Fatal(err)
		}
		if err := c.Theirs(strconv.FormatInt(int64(1<<40+3*i), 10)); err != nil {
			t.Fatal(err)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var most uint64
	watch := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	var found Compared
	seen := 0
	one := func(string) error {
		if seen++; seen%10_000 == 0 {
			watch()
		}
		return nil
	}
	if err := c.Result(func(f Compared) error { found = f; watch(); return nil }, one, one); err != nil {
		t.Fatal(err)
	}
	if both := int64(n / 3); found.Both < both-1 || found.Both > both+1 || most > 64<<20 {
		t.Errorf("%+v with %d MB", found, most>>20)
	}
	if err := c.Theirs(strings.Repeat("1", MaxListed+1)); !errors.Is(err, ErrLongID) {
		t.Error(err)
	}
}
