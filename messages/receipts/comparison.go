package receipts

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
)

// Comparison finds which accepted segments a carrier's own list of ids lacks, and which of its ids belong to none. The
// lists are as long as the disk allows: they are divided by their keys over files, of which one at a time is in memory.
//
// A carrier writes its list in one form. Of the formats, the one that finds most ids is the list's; the carrier's own
// goes first where two find the same number. An id that cannot be written so, and an id of eight characters or more
// that nothing matches, is tried in the other forms too. An id stands for one segment: if the list has it twice, one is
// left.
type Comparison struct {
	dir    string
	format Format
	ours   *bins // by the key of the segment
	theirs *bins // ids, by themselves
}

// Compared is the result of a comparison.
type Compared struct {
	Format                     Format // of the list: how its ids relate to those of submit_sm_resp
	Both, OnlyOurs, OnlyTheirs int64
}

const (
	binCount  = 64
	binBuffer = 16 << 10
	// MaxListed is the longest id of a list, in bytes, and the longest text beside one of ours.
	MaxListed = 1 << 10
	// surely is the number of characters from which an id in another form is hardly another id by chance.
	surely = 8
)

// ErrLongID means that an id of a list is longer than any carrier's.
var ErrLongID = errors.New("an id has more than 1024 bytes")

// NewComparison begins a comparison with a carrier's list. Its files are in a new folder below dir ("": that of the
// system), which Close removes.
func NewComparison(dir string, carrier Format) (c *Comparison, err error) {
	c = &Comparison{format: carrier}
	if c.dir, err = os.MkdirTemp(dir, "intumwa-compare-"); err != nil {
		return nil, fmt.Errorf("comparing with a list: %w", err)
	}
	c.ours, c.theirs = c.bins(), c.bins()
	return c, nil
}

// Close removes the files.
func (c *Comparison) Close() error { return os.RemoveAll(c.dir) }

// Ours adds a segment by its stored key. text is returned if the list lacks it.
func (c *Comparison) Ours(key, text string) error { return c.ours.add(key, text) }

// Theirs adds an id of the list. The error is [ErrLongID] or that of a file.
func (c *Comparison) Theirs(id string) error { return c.theirs.add(Key(id), id) }

// Result compares, and calls ours and theirs with the texts and ids that have no counterpart. It can be called once.
func (c *Comparison) Result(begin func(Compared) error, ours, theirs func(text string) error) (err error) {
	forms := []Format{Same, HexToDecimal, DecimalToHex}
	if i := slices.Index(forms, c.format); i > 0 {
		forms[0], forms[i] = forms[i], forms[0]
	}
	found, keyed := make(map[Format]int64), make(map[Format]*bins)
	for _, form := range forms {
		if keyed[form], err = c.read(c.theirs, form, false); err == nil {
			found[form], err = join(c.ours, keyed[form], nil, nil)
		}
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(forms, func(a, b Format) int { return int(min(max(found[b]-found[a], -1), 1)) })
	all := Compared{Format: forms[0]}
	restOfOurs, restOfTheirs := c.ours, c.theirs
	for i, form := range append(forms, Auto) {
		read := keyed[form]
		if i > 0 {
			if err := read.drop(); err != nil {
				return err
			}
			if restOfOurs.rows == 0 || restOfTheirs.rows == 0 {
				continue
			}
			var err error
			if read, err = c.read(restOfTheirs, form, true); err != nil {
				return err
			}
		}
		nextOurs, nextTheirs := c.bins(), c.bins()
		both, err := join(restOfOurs, read, nextOurs.add, func(_, id string) error { return nextTheirs.add(Key(id), id) })
		if err = errors.Join(err, read.drop(), restOfOurs.drop(), restOfTheirs.drop()); err != nil {
			return err
		}
		all.Both += both
		restOfOurs, restOfTheirs = nextOurs, nextTheirs
	}
	all.OnlyOurs, all.OnlyTheirs = restOfOurs.rows, restOfTheirs.rows
	if err = begin(all); err == nil {
		err = restOfOurs.each(func(_, text string) error { return ours(text) })
	}
	if err == nil {
		err = restOfTheirs.each(func(_, id string) error { return theirs(id) })
	}
	return errors.Join(err, restOfOurs.drop(), restOfTheirs.drop())
}

// read puts ids under the keys that they have in a form; with Auto, under those without the number of a part. With
// onlySurely, an id whose key is short keeps apart: it has no key.
func (c *Comparison) read(ids *bins, form Format, onlySurely bool) (*bins, error) {
	to := c.bins()
	return to, ids.each(func(_, id string) error {
		key := ""
		if form == Auto {
			key = Key(withoutPart(id))
		} else {
			key = form.keys(id)[0]
		}
		if onlySurely && len(key) < surely && form != Auto {
			key = ""
		}
		return to.add(key, id)
	})
}

// join calls onlyOurs and onlyTheirs, unless nil, with the rows that have no counterpart with their key, and returns
// the number of pairs. Rows without a key have none.
func join(ours, theirs *bins, onlyOurs, onlyTheirs func(key, text string) error) (both int64, err error) {
	for i := range binCount {
		type count struct{ ours, matched int32 }
		counts := make(map[string]count)
		err := ours.eachOf(i, func(key, _ string) error {
			if key != "" {
				n := counts[key]
				n.ours++
				counts[key] = n
			}
			return nil
		})
		if err == nil {
			err = theirs.eachOf(i, func(key, text string) error {
				if n := counts[key]; n.matched < n.ours {
					n.matched++
					counts[key] = n
					both++
					return nil
				}
				if onlyTheirs == nil {
					return nil
				}
				return onlyTheirs(key, text)
			})
		}
		if err == nil && onlyOurs != nil {
			err = ours.eachOf(i, func(key, text string) error {
				if n := counts[key]; n.matched > 0 {
					n.matched--
					counts[key] = n
					return nil
				}
				return onlyOurs(key, text)
			})
		}
		if err != nil {
			return both, err
		}
	}
	return both, nil
}

// bins are rows of a key and a text, divided by the key over files, which the first row of each makes.
type bins struct {
	dir     string
	files   [binCount]*os.File
	writers [binCount]*bufio.Writer
	rows    int64
}

func (c *Comparison) bins() *bins { return &bins{dir: c.dir} }

// add writes a row.
func (b *bins) add(key, text string) error {
	if len(key) > MaxListed || len(text) > MaxListed {
		return ErrLongID
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, key) // it never fails
	i := h.Sum32() % binCount
	if b.files[i] == nil {
		var err error
		if b.files[i], err = os.CreateTemp(b.dir, ""); err != nil {
			return fmt.Errorf("comparing with a list: %w", err)
		}
		b.writers[i] = bufio.NewWriterSize(b.files[i], binBuffer)
	}
	w := b.writers[i]
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(key))), uint64(len(text)))
	for _, part := range []string{string(head), key, text} {
		if _, err := w.WriteString(part); err != nil {
			return fmt.Errorf("comparing with a list: %w", err)
		}
	}
	b.rows++
	return nil
}

// each reads all rows.
func (b *bins) each(do func(key, text string) error) error {
	for i := range binCount {
		if err := b.eachOf(i, do); err != nil {
			return err
		}
	}
	return nil
}

// eachOf reads the rows of one file.
func (b *bins) eachOf(i int, do func(key, text string) error) error {
	if b.files[i] == nil {
		return nil
	}
	err := b.writers[i].Flush()
	if err == nil {
		_, err = b.files[i].Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("comparing with a list: %w", err)
	}
	r := bufio.NewReaderSize(b.files[i], 4*binBuffer)
	for {
		keyed, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		texted, textErr := binary.ReadUvarint(r)
		if err = errors.Join(err, textErr); err == nil && max(keyed, texted) > MaxListed {
			err = ErrLongID
		}
		row := make([]byte, min(keyed+texted, 2*MaxListed))
		if err == nil {
			_, err = io.ReadFull(r, row)
		}
		if err != nil {
			return fmt.Errorf("comparing with a list: %w", err)
		}
		if err := do(string(row[:keyed]), string(row[keyed:])); err != nil {
			return err
		}
	}
}

// drop removes the files.
func (b *bins) drop() (err error) {
	if b == nil {
		return nil
	}
	for _, f := range b.files {
		if f != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	return err
}
