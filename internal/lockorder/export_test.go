package lockorder

import (
	"os"

	"github.com/jackc/pgx/v5"
)

// TracerOfTests writes the edges of tests' own transactions.
func TracerOfTests(file *os.File) pgx.QueryTracer {
	return &tracer{file: file, known: map[[4]string]bool{}, tests: true}
}
