package configs

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Only the parser of goccy/go-yaml is used. Its strict decoder reports one mistake at a time, reads a password 0123 as
// 83, and quotes the file in errors.

// quotations match the parts of the file that the parser's errors quote.
var quotations = regexp.MustCompile("[\"`][^\"`]*[\"`]")

// parse returns the file's one YAML document; nil when it is empty.
func parse(text []byte) (ast.Node, *Problem) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, &Problem{Line: syntax.GetToken().Position.Line,
				Text: quotations.ReplaceAllString(syntax.GetMessage(), "…")}
		}
		return nil, &Problem{Text: "the file is not YAML"}
	}
	var body ast.Node
	for _, document := range file.Docs {
		switch {
		case document.Body == nil || document.Body.Type() == ast.CommentType:
		case body != nil:
			return nil, &Problem{Text: "the file has more than one YAML document"}
		default:
			body = document.Body
		}
	}
	if body == nil {
		return nil, nil
	}
	var plain onlyPlain
	ast.Walk(&plain, body)
	return body, plain.problem
}

// onlyPlain finds the first node that is not permitted.
type onlyPlain struct{ problem *Problem }

func (p *onlyPlain) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode, *ast.DirectiveNode:
		if p.problem == nil {
			p.problem = &Problem{Line: lineOf(n), Text: fmt.Sprintf(
				"a YAML %s is not supported; a value that begins with &, *, ! or %% needs quotes", n.Type())}
		}
		return nil
	}
	return p
}

// null reports whether there is no value.
func null(n ast.Node) bool { return n == nil || n.Type() == ast.NullType }

// written is a scalar as written in the file.
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

// pairs are an object's pairs; none, and a problem, for any other node.
func (r *reader) pairs(path string, n ast.Node) (out []pair) {
	object, ok := n.(ast.MapNode)
	if !ok {
		r.problem(path, lineOf(n), "must be an object with keys")
		return nil
	}
	first := map[string]int{} // its line
	for it := object.MapRange(); it.Next(); {
		key, ok := written(it.Key())
		line := lineOf(it.Key())
		switch before, twice := first[key]; {
		case !ok:
			r.problem(path, line, "a key must be a plain word")
		case twice:
			r.problem(join(path, key), line, "is defined in line %d already", before)
		default:
			first[key] = line
			out = append(out, pair{key, line, it.Value()})
		}
	}
	return out
}
