package configs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// document is the file's one YAML document. Its scalars are taken as they are written, so that a password 0123 is not a
// number.
type document struct {
	body    ast.Node // nil when it is empty
	anchors map[string]ast.Node
	aliases map[*ast.AliasNode]ast.Node
	problem *Problem
}

// quotations are the pieces of the file in the parser's words.
var quotations = regexp.MustCompile("[\"`][^\"`]*[\"`]")

func parse(text []byte) (*document, *Problem) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, &Problem{Line: syntax.GetToken().Position.Line, Text: quotations.ReplaceAllString(syntax.GetMessage(), "…")}
		}
		return nil, &Problem{Text: "the file is not YAML"} // the error quotes the file
	}
	d := &document{anchors: map[string]ast.Node{}, aliases: map[*ast.AliasNode]ast.Node{}}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if d.body != nil {
			return nil, &Problem{Text: "the file has more than one YAML document"}
		}
		d.body = doc.Body
		ast.Walk(d, d.body)
	}
	return d, d.problem
}

// Visit notes where each alias leads. An anchor is known only behind its node, so none holds itself.
func (d *document) Visit(n ast.Node) ast.Visitor {
	fail := func(text string) {
		if d.problem == nil {
			d.problem = &Problem{Line: lineOf(n), Text: text}
		}
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		ast.Walk(d, n.Value)
		d.anchors[n.Name.GetToken().Value] = n.Value
		return nil
	case *ast.AliasNode:
		there, ok := d.anchors[n.Value.GetToken().Value]
		if !ok {
			fail("there is no anchor above for this alias; a value that begins with * stands in quotes")
		}
		d.aliases[n] = there
		return nil
	case *ast.TagNode, *ast.DirectiveNode:
		fail(fmt.Sprintf("%s is not supported here", n.Type()))
		return nil
	}
	return d
}

// plain is the node that stands behind anchors and aliases.
func (d *document) plain(n ast.Node) ast.Node {
	for {
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.AliasNode:
			n = d.aliases[at]
		default:
			return n
		}
	}
}

// null tells whether there is no value.
func null(n ast.Node) bool { return n == nil || n.Type() == ast.NullType }

// written is a scalar as it stands in the file.
func written(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func lineOf(n ast.Node) int {
	if n == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

type pair struct {
	key   string
	line  int
	value ast.Node
}

// pairs are those of an object, merged ones last and only where it has none of its own; nil, and a problem, for anything
// else.
func (r *reader) pairs(path string, n ast.Node) (out []pair) {
	object, ok := n.(ast.MapNode)
	if !ok {
		r.problem(path, lineOf(n), "must be an object with keys")
		return nil
	}
	var merged []pair
	for it := object.MapRange(); it.Next(); {
		value := r.plain(it.Value())
		if !it.Key().IsMergeKey() {
			if key, ok := written(r.plain(it.Key())); ok {
				out = append(out, pair{key, lineOf(it.Key()), it.Value()})
			} else {
				r.problem(path, lineOf(it.Key()), "a key must be a plain word")
			}
			continue
		}
		if several, ok := value.(*ast.SequenceNode); ok {
			for _, one := range several.Values {
				merged = append(merged, r.pairs(path, r.plain(one))...)
			}
		} else {
			merged = append(merged, r.pairs(path, value)...)
		}
	}
	first := map[string]int{} // its line
	out = slices.DeleteFunc(out, func(p pair) bool {
		line, twice := first[p.key]
		if twice {
			r.problem(join(path, p.key), p.line, "is defined in line %d already", line)
		} else {
			first[p.key] = p.line
		}
		return twice
	})
	for _, p := range merged {
		if _, there := first[p.key]; !there {
			first[p.key], out = p.line, append(out, p)
		}
	}
	return out
}
