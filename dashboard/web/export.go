package web

import (
	"fmt"
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
		h := v.C.Writer.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="intumwa-%s-%d-%s.csv"`, what, t.Company.ID,
			postgres.Now().In(texts.Bujumbura).Format("20060102-1504")))
		v.C.Status(http.StatusOK)
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
