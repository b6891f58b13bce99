package lockorder_test

import (
	"strings"
	"testing"

	"intumwa/internal/lockorder"
)

func TestLocks(t *testing.T) {
	for sql, want := range map[string]string{
		`SELECT a FROM t WHERE b IS DISTINCT FROM c`:                                      "",
		`SELECT FROM t WHERE a LIKE '%UPDATE u%'`:                                         "",
		`INSERT INTO t (a) VALUES ('for update')`:                                         "",
		`update only t set a = 1 -- for update`:                                           "t",
		`DELETE FROM t USING u WHERE t.id = u.id`:                                         "t",
		`INSERT INTO t AS x (a) SELECT a FROM u ON CONFLICT (a) DO UPDATE SET a = 1`:      "t",
		`INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING`:                                 "t",
		`SELECT FROM t JOIN u AS v USING (id), unnest($1) w(id) ORDER BY t.id FOR UPDATE`: "t u",
		`SELECT FROM t LEFT JOIN u v ON v.a = t.a FOR NO KEY UPDATE OF v SKIP LOCKED`:     "u?",
		`SELECT FROM t JOIN u ON true FOR UPDATE OF u, t`:                                 "u t",
		`SELECT FROM t FOR SHARE NOWAIT`:                                                  "t?",
		`DELETE FROM t WHERE id IN (SELECT id FROM t FOR UPDATE SKIP LOCKED)`:             "t? t",
		`WITH a AS (SELECT FROM t FOR UPDATE), b AS (DELETE FROM u USING a) UPDATE w SET`: "w t u",
		`WITH a AS MATERIALIZED (UPDATE t SET x = 1 RETURNING id) DELETE FROM u USING a`:  "t u",
		`WITH a AS (SELECT 1) SELECT FROM a JOIN t ON true FOR UPDATE`:                    "t",
		`LOCK TABLE t IN SHARE MODE; UPDATE u SET a = 1`:                                  "t u",
		`SELECT pg_advisory_xact_lock(hashtextextended('intumwa carrier ' || $1, 0))`:     "advisory intumwa carrier",
		`SELECT pg_advisory_xact_lock_shared(hashtextextended('a b', 0))`:                 "advisory a b",
		`SELECT FROM t WHERE pg_try_advisory_xact_lock($1)`:                               "advisory?",
		`UPDATE webhook_undelivered SET due = now()`:                                      "webhook_deliveries",
	} {
		var got []string
		for _, lock := range lockorder.Locks(sql) {
			if got = append(got, lock.Name); !lock.Waits {
				got[len(got)-1] += "?"
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\nlocks %q, want %q", sql, got, want)
		}
	}
}
