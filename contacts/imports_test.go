package contacts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/xuri/excelize/v2"

	"intumwa/contacts"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/texts"
)

// importerOf names the database of a process that only merges imports: this test's program, started again.
const importerOf = "INTUMWA_TEST_CONTACT_IMPORTER"

var plan = sms.NewPlan("6", "7")

func TestMain(m *testing.M) {
	if database := os.Getenv(importerOf); database != "" {
		pool, err := postgres.Open(context.Background(), database, postgres.Options{MaxConns: 2})
		if err != nil {
			panic(err)
		}
		_ = contacts.NewImports(pool, plan, slog.New(slog.DiscardHandler)).Run(context.Background()) // until it is killed
		return
	}
	testenv.Main(m)
}

func english(t testing.TB) *texts.Language {
	t.Helper()
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	lang, _ := all.ByTag("en")
	return lang
}

type importing struct {
	*testStore
	*contacts.Imports
	lang *texts.Language
}

func newImporting(t testing.TB) *importing {
	d := newTestStore(t)
	return &importing{d, contacts.NewImports(d.pool, plan, slog.New(slog.DiscardHandler)), english(t)}
}

// check checks a file that nothing is wrong with as a whole.
func (d *importing) check(f contacts.File) contacts.Import {
	d.Helper()
	x, wrong, err := d.Check(d.Context(), d.lang, f)
	if err != nil || len(wrong) > 0 {
		d.Fatal(wrong, err)
	}
	return x
}

func (d *importing) confirm(x contacts.Import) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, _, err := contacts.Confirm(ctx, tx, x.Company, x.ID)
		return err
	})
}

// merge confirms an import and merges it.
func (d *importing) merge(x contacts.Import) contacts.Import {
	d.Helper()
	d.confirm(x)
	x, err := d.Merge(d.Context(), x.Company, x.ID)
	if err != nil || x.DoneAt == nil {
		d.Fatal(x, err)
	}
	return x
}

func counts(x contacts.Import) string {
	return fmt.Sprintf("%d new, %d changed, %d unchanged, %d refused, %d repeated", x.Added, x.Changed, x.Unchanged,
		x.Refused, x.Repeated)
}

// shown is a contact on one line.
func shown(c contacts.Contact) string {
	var more []string
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		more = append(more, name+"="+c.Fields[name])
	}
	for _, g := range c.Groups {
		more = append(more, g.Name)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s|%s|%s", c.Number.National(), c.Name, c.Language, strings.Join(more, ",")))
}

// TestHabitsOfLists: lists as people have them, and the contacts that they become; or why one is refused.
func TestHabitsOfLists(t *testing.T) {
	var book bytes.Buffer
	f := excelize.NewFile()
	for cell, value := range map[string]any{"A1": "Parents d'élèves 2026", "A3": "Noms et prénoms", "B3": "Classe",
		"C3": "Téléphone", "D3": "Frais (FBu)", "A4": "NDAYIZEYE Aline", "B4": 3, "C4": 79123456, "D4": 25000,
		"A5": "Éric", "B5": "4 B", "C5": "+257 71 23 45 67", "D5": 12500.5} {
		if err := f.SetCellValue("Sheet1", cell, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Write(&book); err != nil {
		t.Fatal(err)
	}
	wide := strings.Builder{}
	wide.WriteString("phone")
	for i := range 21 {
		fmt.Fprintf(&wide, ";c%d", i)
	}
	for habit, test := range map[string]struct {
		file   string
		counts string
		want   []string
	}{
		"Excel, semicolons, Windows-1252": {"Nom;T\xe9l\xe9phone;Classe\r\nH\xe9l\xe8ne;79123456;3\r\nZo\xe9;71234567;4\r\n",
			"2 new, 0 changed, 0 unchanged, 0 refused, 0 repeated",
			[]string{"71234567 Zoé||classe=4", "79123456 Hélène||classe=3"}},
		"a workbook with a title": {book.String(), "2 new, 0 changed, 0 unchanged, 0 refused, 0 repeated",
			[]string{"71234567 Éric||classe=4 B,frais_fbu=12500.5", "79123456 NDAYIZEYE Aline||classe=3,frais_fbu=25000"}},
		"surname and first name": {"Nom,Prénom,Tel\nNDAYIZEYE,Aline,79123456\n",
			"1 new, 0 changed, 0 unchanged, 0 refused, 0 repeated", []string{"79123456 NDAYIZEYE Aline||prenom=Aline"}},
		"languages and groups": {"phone,langue,groupes\n79123456,Kirundi,\"Classe 3, Chorale\"\n71234567,fr,classe 3\n",
			"2 new, 0 changed, 0 unchanged, 0 refused, 0 repeated",
			[]string{"71234567 |fr|Classe 3", "79123456 |rn|Chorale,Classe 3"}},
		"a bare list": {"79123456\n71234567\n", "2 new, 0 changed, 0 unchanged, 0 refused, 0 repeated",
			[]string{"71234567 ||", "79123456 ||"}},
		"a number twice": {"tel;nom;groupe\n79123456;Aline;a\n71234567;B;\n+25779123456;Aline N.;b\n",
			"2 new, 0 changed, 0 unchanged, 0 refused, 1 repeated", []string{"71234567 B||", "79123456 Aline N.||a,b"}},
		"bad lines": {"tel;nom;langue\n79123456;A;fr\n123;B;fr\n;C;fr\n71234567;#N/A;fr\n72000000;D;klingon\n",
			"1 new, 0 changed, 0 unchanged, 4 refused, 0 repeated", []string{"79123456 A|fr|"}},
		"a second number": {"Nom;Tel;Tel 2\nA;79123456;71000001\n", "1 new, 0 changed, 0 unchanged, 0 refused, 0 repeated",
			[]string{"79123456 A||tel_2=71000001"}},
		"numbers of lines": {"N°;Nom;Tel\n1;A;79123456\n", "1 new, 0 changed, 0 unchanged, 0 refused, 0 repeated",
			[]string{"79123456 A||"}},
		"a column without a name": {"Nom;Tel;;Solde dû\nA;79123456;x;0\n",
			"1 new, 0 changed, 0 unchanged, 0 refused, 0 repeated", []string{"79123456 A||solde_du=0"}},
		"tabs, UTF-16": {string(utf16("phone\tnom\r\n79123456\tHélène\r\n")),
			"1 new, 0 changed, 0 unchanged, 0 refused, 0 repeated", []string{"79123456 Hélène||"}},
		"columns that are one": {"tel;Solde dû;solde-du\n79123456;1;2\n", "Several columns are named “solde-du”. Give each its own name.", nil},
		"too many columns": {wide.String() + "\n79123456\n",
			"A company’s contacts can have 20 different fields. With those of this file there would be: c0, c1, c2, " +
				"c3, c4, c5, " +
				"c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20. Delete columns that you do not need.", nil},
		"no numbers": {"Nom;Ville\nA;Gitega\n", "No column has phone numbers of Burundi. Name the column of the numbers phone_number.", nil},
	} {
		t.Run(habit, func(t *testing.T) {
			d := newImporting(t)
			x, wrong, err := d.Check(t.Context(), d.lang, contacts.File{Company: 1, Name: "liste.csv", Content: []byte(test.file)})
			if err != nil || len(wrong) > 0 {
				if len(wrong) != 1 || test.want != nil || wrong[0].Text != test.counts {
					t.Error(wrong, err)
				}
				return
			}
			if counts(x) != test.counts {
				t.Error(counts(x))
			}
			if done := d.merge(x); counts(done) != test.counts {
				t.Error("merged:", counts(done))
			}
			page, _, err := d.Store.List(t.Context(), 1, contacts.Filter{Number: "+"}, "", 100)
			var got []string
			for _, c := range page {
				got = append(got, shown(c))
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%q, %v", got, err)
			}
			d.exact()
		})
	}
}

// TestImportIntoFullGroups: with as many groups as are kept, an import can still name them.
func TestImportIntoFullGroups(t *testing.T) {
	d := newImporting(t)
	if _, err := d.pool.Exec(t.Context(), `INSERT INTO contact_groups (company_id, name, name_key)
		SELECT 1, 'G' || n, 'g' || n FROM generate_series(1, $1) n`, contacts.MaxGroups); err != nil {
		t.Fatal(err)
	}
	done := d.merge(d.check(contacts.File{Company: 1, Content: []byte("tel;groupe\n79123456;g7\n")}))
	if counts(done) != "1 new, 0 changed, 0 unchanged, 0 refused, 0 repeated" {
		t.Error(counts(done))
	}
	if c := d.byNumber(1, "+25779123456"); len(c.Groups) != 1 || c.Groups[0].Name != "G7" {
		t.Errorf("%+v", c.Groups)
	}
	x := d.check(contacts.File{Company: 1, Content: []byte("tel;groupe\n79123456;g7, another\n")})
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if _, _, err := contacts.Confirm(ctx, tx, 1, x.ID); !errors.Is(err, contacts.ErrGroups) {
			t.Error(err)
		}
		return nil
	})
}

// TestEraseDuringCheck: an erasure finds the lines of a check that has not ended.
func TestEraseDuringCheck(t *testing.T) {
	d := newImporting(t)
	file := strings.Builder{}
	file.WriteString("tel;nom\n79123456;A\n")
	for i := range 20_000 {
		fmt.Fprintf(&file, "7%07d;B\n", i)
	}
	var check sync.WaitGroup
	var x contacts.Import
	check.Go(func() { x = d.check(contacts.File{Company: 1, Content: []byte(file.String())}) })
	begun := func() (is bool) {
		d.must(d.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&is))
		return is
	}
	for end := time.Now().Add(time.Minute); !begun(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the check does not begin")
		}
	}
	_, err := d.Erase(t.Context(), "+25779123456")
	d.must(err)
	check.Wait()
	if done := d.merge(x); done.Added != 20_000 {
		t.Error(counts(done))
	}
	if _, err := d.ByNumber(t.Context(), 1, "+25779123456"); !errors.Is(err, contacts.ErrNotFound) {
		t.Error("the erased number is a contact:", err)
	}
}

func utf16(text string) []byte {
	out := []byte("\xff\xfe")
	for _, r := range text {
		out = append(out, byte(r), byte(r>>8))
	}
	return out
}

// TestMergeByNumber: an import changes what its cells say, and nothing else; the same file again changes nothing.
func TestMergeByNumber(t *testing.T) {
	d := newImporting(t)
	old, wanted := d.group(1, "Anciens"), d.group(1, "Parents")
	aline := entry("+25779123456", "Aline", old)
	aline.Language, aline.Fields = new("rn"), map[string]*string{"ville": new("Gitega"), "classe": new("2")}
	aline.Consent = &contacts.Consent{Source: "form", At: time.Now()}
	d.put(1, aline)
	file := contacts.File{Company: 1, Name: "parents.csv", Group: wanted, Consent: contacts.Consent{Source: "school"},
		Content: []byte("tel;nom;classe;ville\n79123456;;3;\n71234567;Éric;4;Ngozi\n12;x;y;z\n")}
	x := d.check(file)
	if counts(x) != "1 new, 1 changed, 0 unchanged, 1 refused, 0 repeated" {
		t.Error(counts(x))
	}
	preview, err := d.Preview(t.Context(), x.ID, 5)
	if err != nil || len(preview) != 2 || !preview[0].Changed || !preview[1].New || preview[1].Fields["ville"] != "Ngozi" {
		t.Errorf("%+v, %v", preview, err)
	}
	if list, _, err := d.Store.List(t.Context(), 1, contacts.Filter{}, "", 10); len(list) != 1 || err != nil {
		t.Error("something was written before it was confirmed")
	}
	done := d.merge(x)
	if counts(done) != counts(x) || done.Position != 3 {
		t.Error(counts(done), done.Position)
	}
	if c := d.byNumber(1, "+25779123456"); shown(c) != "79123456 Aline|rn|classe=3,ville=Gitega,Anciens,Parents" ||
		c.Consent.Source != "form" {
		t.Error(shown(c), c.Consent)
	}
	if c := d.byNumber(1, "+25771234567"); c.Consent.Source != "school" || c.Consent.At.IsZero() {
		t.Error(c.Consent)
	}
	refused, err := d.Refused(t.Context(), x.ID, 0, 10)
	if err != nil || len(refused) != 1 || refused[0].Line != 4 || !strings.Contains(refused[0].Fault, "12") {
		t.Errorf("%+v, %v", refused, err)
	}
	if x = d.check(file); counts(x) != "0 new, 0 changed, 2 unchanged, 1 refused, 0 repeated" {
		t.Error("the same file:", counts(x))
	}
	if done := d.merge(x); counts(done) != counts(x) {
		t.Error(counts(done))
	}
	d.exact()
	if _, wrong, err := d.Check(t.Context(), d.lang, contacts.File{Company: 2, Group: wanted, Content: file.Content}); err == nil {
		t.Error("another company's group:", wrong)
	}
	if dropped, err := d.Drop(t.Context(), 1, x.ID); dropped || err != nil {
		t.Error("a merged import was dropped", err)
	}
}

// bigFile has n lines, the numbers from first on.
func bigFile(first, n int) []byte {
	var b bytes.Buffer
	b.WriteString("tel;nom;classe;groupe\n")
	for i := range n {
		fmt.Fprintf(&b, "%d;Parent %d;%d;g%d\n", first+i, i, i%7, i%5)
	}
	return b.Bytes()
}

// TestTwoImports: two imports of overlapping files at once by several processes, and a third of the same file: each
// number is one contact, and all counts are right.
func TestTwoImports(t *testing.T) {
	d := newImporting(t)
	a := d.check(contacts.File{Company: 1, Name: "a", Content: bigFile(79000000, 5000)})
	b := d.check(contacts.File{Company: 1, Name: "b", Content: bigFile(79002500, 5000)})
	d.confirm(a)
	d.confirm(b)
	var all sync.WaitGroup
	for _, x := range []contacts.Import{a, b, a, b} {
		all.Go(func() {
			if done, err := d.Merge(t.Context(), 1, x.ID); err != nil || done.Added+done.Changed+done.Unchanged != 5000 {
				t.Error(counts(done), err)
			}
		})
	}
	all.Wait()
	d.exact()
	if book, err := d.Book(t.Context(), 1); book.Contacts != 7500 || err != nil {
		t.Error(book, err)
	}
	groups, err := d.Groups(t.Context(), 1)
	if err != nil || len(groups) != 5 || groups[0].Members != 1500 {
		t.Error(groups, err)
	}
}

// TestImporterKilled: processes that merge an import are killed (SIGKILL) at any moment, another goes on, and each line
// counts once.
func TestImporterKilled(t *testing.T) {
	d := newImporting(t)
	const lines = 20_000
	x := d.check(contacts.File{Company: 1, Name: "a", Content: bigFile(79000000, lines)})
	d.confirm(x)
	process := func() (kill func()) {
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), importerOf+"="+d.pool.Config().ConnString())
		p.Stderr = t.Output()
		d.must(p.Start())
		kill = sync.OnceFunc(func() {
			_ = p.Process.Kill()
			_ = p.Wait()
		})
		t.Cleanup(kill)
		return kill
	}
	comes := func(is func(x contacts.Import) bool) contacts.Import {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			now, err := d.Get(t.Context(), 1, x.ID)
			d.must(err)
			if is(now) {
				return now
			}
			if time.Now().After(end) {
				t.Fatal("it does not go on", counts(now))
			}
		}
	}
	_, err := d.pool.Exec(t.Context(), `CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END'; CREATE TRIGGER slowly BEFORE UPDATE OF position ON contact_imports
		FOR EACH ROW EXECUTE FUNCTION slowly()`)
	d.must(err)
	position := 0
	for range 3 {
		kill := process()
		position = comes(func(x contacts.Import) bool { return x.Position > position }).Position
		kill()
	}
	if position == lines {
		t.Fatal("it was done before the last process was killed")
	}
	_, err = d.pool.Exec(t.Context(), `DROP TRIGGER slowly ON contact_imports`)
	d.must(err)
	process()
	done := comes(func(x contacts.Import) bool { return x.DoneAt != nil })
	if counts(done) != "20000 new, 0 changed, 0 unchanged, 0 refused, 0 repeated" {
		t.Error(counts(done))
	}
	d.exact()
}

// TestErasedFromImports: a number that is erased is in no table, whatever imports have of it.
func TestErasedFromImports(t *testing.T) {
	d := newImporting(t)
	const number = "+25779000001"
	for company := range int64(3) {
		d.put(company+1, entry(number, "Aline"), entry("+25779000002", "B"))
	}
	waiting := d.check(contacts.File{Company: 1, Name: "a", Content: bigFile(79000000, 10)})
	confirmed := d.check(contacts.File{Company: 2, Name: "a", Content: bigFile(79000000, 10)})
	d.confirm(confirmed)
	if n, err := d.Erase(t.Context(), number); n != 3 || err != nil {
		t.Error(n, err)
	}
	d.merge(waiting)
	d.merge(confirmed)
	if list, err := d.OfNumber(t.Context(), number); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
	d.exact()
	var left int
	d.must(d.pool.QueryRow(t.Context(), `SELECT count(*) FROM contact_import_rows WHERE phone_number = $1`, number).Scan(&left))
	if left > 0 {
		t.Error("an import has the number")
	}
}

// TestFullBook: an import that would exceed the limit is refused before anything is written, and one that meets it on
// the way ends, saying so.
func TestFullBook(t *testing.T) {
	d := newImporting(t)
	x := d.check(contacts.File{Company: 1, Name: "a", Content: bigFile(79000000, 10)})
	_, err := d.pool.Exec(t.Context(), `INSERT INTO contact_books (company_id, contacts) VALUES (1, $1)`,
		contacts.MaxContacts-5)
	d.must(err)
	if _, wrong, err := d.Check(t.Context(), d.lang, contacts.File{Company: 1, Content: bigFile(79000000, 10)}); len(
		wrong) != 1 || err != nil || !strings.Contains(wrong[0].Text, "499") {
		t.Error(wrong, err)
	}
	if done := d.merge(x); done.Stopped != contacts.StoppedFull || done.Added != 0 {
		t.Error(done.Stopped, counts(done))
	}
	if _, err := d.Put(t.Context(), 1, []contacts.Entry{entry("+25779000001", ""), entry("+25779000002", ""),
		entry("+25779000003", ""), entry("+25779000004", ""), entry("+25779000005", ""), entry("+25779000006",
			"")}); !errors.Is(err, contacts.ErrFull) {
		t.Error(err)
	}
	_, _ = d.pool.Exec(t.Context(), `UPDATE contact_books SET contacts = $1`, contacts.MaxContacts)
	group := d.group(1, "g")
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.Join(ctx, tx, 1, group, "+25779000001", contacts.Consent{}); !errors.Is(err, contacts.ErrFull) {
			t.Error(err)
		}
		return nil
	})
}

// TestRoomMeanwhile: an import goes on if another process had room for the lines at which one met the limit, before
// that one could end it.
func TestRoomMeanwhile(t *testing.T) {
	d := newImporting(t)
	const lines = 2001 // more than a step
	x := d.check(contacts.File{Company: 1, Name: "a", Content: bigFile(79000000, lines)})
	d.confirm(x)
	_, err := d.pool.Exec(t.Context(), `INSERT INTO contact_books (company_id, contacts) VALUES (1, $1)`,
		contacts.MaxContacts)
	d.must(err)
	config, turns := d.pool.Config(), 0
	config.PrepareConn = func(ctx context.Context, _ *pgx.Conn) (bool, error) {
		if turns++; turns == 2 { // after the step, before the end
			_, err := d.pool.Exec(ctx, `UPDATE contact_books SET contacts = 0`)
			d.must(err)
			_, err = d.MergeNext(ctx)
			d.must(err)
		}
		return true, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	d.must(err)
	defer pool.Close()
	_, err = contacts.NewImports(pool, plan, slog.New(slog.DiscardHandler)).MergeNext(t.Context())
	d.must(err)
	if turns != 2 {
		t.Errorf("%d transactions", turns)
	}
	if done, err := d.Merge(t.Context(), 1, x.ID); err != nil || done.Stopped != "" || done.Added != lines {
		t.Errorf("stopped %q, %s, %v", done.Stopped, counts(done), err)
	}
	d.exact()
}
