package lockorder_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/lockorder"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestTracer has the edges of transactions on a real server, each a list of statements.
func TestTracer(t *testing.T) {
	config := testenv.Pool(t).Config()
	const updateA, updateB = `UPDATE a SET id = id`, `UPDATE b SET id = id`
	for _, c := range []struct {
		name         string
		transactions [][]string
		want         string
	}{
		{"opposite orders", [][]string{{updateA, `SELECT FROM b FOR UPDATE`}, {updateB, `DELETE FROM a`}}, "a b, b a"},
		{"each alone", [][]string{{updateA}, {updateB}}, ""},
		{"the same rows again", [][]string{{updateA, updateB, updateA}}, "a b"},
		{"a lock without waiting", [][]string{{updateA, `SELECT FROM b FOR UPDATE SKIP LOCKED`}}, ""},
		{"what is locked after it", [][]string{{`SELECT FROM b FOR UPDATE SKIP LOCKED`, updateA}}, "b a"},
		{"a conflict", [][]string{{updateA, `INSERT INTO b VALUES (1) ON CONFLICT DO NOTHING`}}, "a b"},
		{"one statement",
			[][]string{{`WITH n AS (UPDATE a SET id = id RETURNING id) DELETE FROM b USING n WHERE b.id = n.id`}}, "a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			traced := config.Copy()
			traced.ConnConfig.Tracer = lockorder.TracerOfTests(file)
			traced.MaxConns = 1
			pool, err := pgxpool.NewWithConfig(t.Context(), traced)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `CREATE TEMPORARY TABLE IF NOT EXISTS a (id int UNIQUE); CREATE TEMPORARY TABLE
				IF NOT EXISTS b (id int UNIQUE)`); err != nil {
				t.Fatal(err)
			}
			for _, statements := range c.transactions {
				b := &pgx.Batch{} // as postgres.Tx sends them
				for _, sql := range slices.Concat([]string{"begin"}, statements, []string{"commit"}) {
					b.Queue(sql)
				}
				if err := pool.SendBatch(t.Context(), b).Close(); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(text)) {
				f := strings.Split(line, "\t")
				got = append(got, f[0]+" "+f[3])
				if !strings.HasPrefix(f[1], "internal/lockorder/tracer_test.go:") {
					t.Errorf("the place is %q", f[1])
				}
			}
			if slices.Sort(got); strings.Join(got, ", ") != c.want {
				t.Errorf("the edges are %q, want %s", got, c.want)
			}
		})
	}
}
