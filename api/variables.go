package api

import "strings"

// variableReader reads the variables that a template uses and looks at no
// others. It is used for one recipient after the other.
type variableReader struct {
	names []string
	index map[string]int
	given []value // of equal keys the last; "" where there is none
}

func newVariableReader(names []string) *variableReader {
	r := &variableReader{names: names, index: make(map[string]int, len(names)), given: make([]value, len(names))}
	for i, name := range names {
		r.index[name] = i
	}
	return r
}

// wrongVariable is one that is no text, or a text that is too long.
type wrongVariable struct {
	name   string
	noText bool
}

// read answers the values of an object's members, nil for null.
func (r *variableReader) read(v value) (values map[string]*string, wrong []wrongVariable) {
	clear(r.given)
	for name, v := range v.members() {
		if i, used := r.index[name]; used {
			r.given[i] = v
		}
	}
	values = make(map[string]*string, len(r.names))
	for i, v := range r.given {
		name := r.names[i]
		switch text, isText := v.text(); {
		case v == "":
		case v.isNull():
			values[name] = nil
		case !isText:
			wrong = append(wrong, wrongVariable{name, true})
		case longer(text, maxVariable), strings.IndexByte(text, 0) >= 0:
			wrong = append(wrong, wrongVariable{name, false})
		default:
			values[name] = &text
		}
	}
	return values, wrong
}
