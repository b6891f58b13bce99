package web

import (
	"bufio"
	"fmt"
	"io"
	"net/http"

	"intumwa/internal/postgres"
	"intumwa/texts"
)

const exportPart = 500 // rows between flushes

// Export responds with a CSV file and streams the rows of write, so its memory does not depend on the length. The file
// has the form of the language (texts.CSV). An error cuts the connection, so the browser reports an incomplete file.
func (v *Visit) Export(t Tenant, what string, heads []string, write func(row func(...string) error) error) error {
	v.Leave() // write takes a turn for each page that it reads
	leave, err := v.DownloadTurn(t.Company.ID)
	if err != nil {
		return err
	}
	defer leave()
	to := NewDownload(v)
	out := v.Lang.CSV(to)
	rows := 0
	begin := func() error {
		v.beginFile(t, what, "csv")
		if _, err := to.Write([]byte(texts.CSVMark)); err != nil {
			return err
		}
		return out.Write(heads)
	}
	flush := func() error {
		out.Flush()
		if err := out.Error(); err != nil {
			return err
		}
		return to.Flush()
	}
	if v.HeadOnly() {
		write = func(func(...string) error) error { return nil }
	}
	err = write(func(cells ...string) error {
		if rows == 0 {
			if err := begin(); err != nil {
				return err
			}
		}
		if rows++; rows%exportPart == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		return out.Write(cells)
	})
	switch {
	case err != nil && rows == 0:
		return err
	case err == nil && rows == 0:
		err = begin()
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		v.CutOff(what, err)
	}
	return nil
}

// beginFile responds with a file of that kind, which follows.
func (v *Visit) beginFile(t Tenant, what, kind string) {
	h := v.C.Writer.Header()
	h.Set("Content-Type", fileTypes[kind])
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="intumwa-%s-%d-%s.%s"`, what, t.Company.ID,
		postgres.Now().In(texts.Bujumbura).Format("20060102-1504"), kind))
	v.C.Status(http.StatusOK)
}

var fileTypes = map[string]string{"csv": "text/csv; charset=utf-8; header=present",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}

// Stream responds with a file of a kind, csv or xlsx, as write writes it. write reads in the visitor's turn at the
// database, which ends while the client reads. Its error before the first byte becomes a page; a later one cuts the
// connection.
func (v *Visit) Stream(t Tenant, what, kind string, write func(to io.Writer) error) error {
	v.Leave()
	leave, err := v.DownloadTurn(t.Company.ID)
	if err != nil {
		return err
	}
	defer leave()
	begun := false
	to := NewDownload(v)
	out := bufio.NewWriterSize(writes(func(p []byte) (n int, err error) {
		if !begun {
			v.beginFile(t, what, kind)
			begun = true
		}
		v.Leave()
		if n, err = to.Write(p); err == nil {
			err = v.waitTurn()
		}
		return n, err
	}), downloadPart)
	if err = v.waitTurn(); err == nil {
		err = write(out)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil && begun {
		v.CutOff(what, err)
	}
	return err
}

type writes func(p []byte) (int, error)

// Write implements io.Writer.
func (w writes) Write(p []byte) (int, error) { return w(p) }

// Export is [Visit.Export] of a list, newest row first. It takes a turn for each part that it reads.
func Export[T any](v *Visit, t Tenant, what string, heads []string,
	list func(before int64, limit int) ([]T, int64, error), cells func(*T) []string) error {
	return v.Export(t, what, heads, func(row func(...string) error) error {
		for before := int64(0); ; {
			var page []T
			if err := v.InTurn(func() (err error) {
				page, before, err = list(before, RowsAtOnce)
				return err
			}); err != nil {
				return err
			}
			for i := range page {
				if err := row(cells(&page[i])...); err != nil {
					return err
				}
			}
			if before == 0 {
				return nil
			}
		}
	})
}
