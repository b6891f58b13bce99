package configs

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node is a YAML value with its line: aliases resolved, merge keys merged, scalars as they are written in the file
// (so that a password 0123 is not a number).
type node struct {
	kind  kind
	line  int
	text  string  // of a scalar
	items []*node // of a list
	pairs []pair  // of an object
}

type pair struct {
	key   string
	line  int
	value *node
}

type kind uint8

const (
	null kind = iota
	scalar
	list
	object
)

// quotations are the pieces of the file in the parser's words.
var quotations = regexp.MustCompile("[\"`][^\"`]*[\"`]")

// parse reads one YAML document. An empty one is null.
func parse(text []byte) (*node, *Problem) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, &Problem{Line: syntax.GetToken().Position.Line, Text: quotations.ReplaceAllString(syntax.GetMessage(), "…")}
		}
		return nil, &Problem{Text: "the file is not YAML"} // the error quotes the file
	}
	b := builder{anchors: map[string]*node{}}
	root := &node{}
	documents := 0
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		documents++
		root = b.build(doc.Body)
	}
	if b.problem == nil && documents > 1 {
		b.problem = &Problem{Text: "the file has more than one YAML document"}
	}
	return root, b.problem
}

type builder struct {
	anchors map[string]*node
	problem *Problem
}

func (b *builder) build(n ast.Node) *node {
	if n == nil {
		return &node{}
	}
	line := n.GetToken().Position.Line
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{line: line}
	case *ast.StringNode:
		return &node{kind: scalar, line: line, text: n.Value}
	case *ast.LiteralNode:
		return &node{kind: scalar, line: line, text: n.Value.Value}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: scalar, line: line, text: n.GetToken().Value}
	case *ast.SequenceNode:
		out := &node{kind: list, line: line}
		for _, item := range n.Values {
			out.items = append(out.items, b.build(item))
		}
		return out
	case *ast.MappingNode:
		return b.object(line, n.Values)
	case *ast.MappingValueNode:
		return b.object(line, []*ast.MappingValueNode{n})
	case *ast.AnchorNode:
		out := b.build(n.Value)
		b.anchors[n.Name.GetToken().Value] = out
		return out
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if out, ok := b.anchors[name]; ok {
			return out
		}
		return b.fail(line, "there is no anchor above for this alias; a value that begins with * stands in quotes")
	}
	return b.fail(line, fmt.Sprintf("%s is not supported here", n.Type()))
}

func (b *builder) fail(line int, text string) *node {
	if b.problem == nil {
		b.problem = &Problem{Line: line, Text: text}
	}
	return &node{line: line}
}

// object puts merged pairs last and only where the object has no pair of its own.
func (b *builder) object(line int, values []*ast.MappingValueNode) *node {
	out := &node{kind: object, line: line}
	var merged []*node
	for _, v := range values {
		if v.Key.IsMergeKey() {
			m := b.build(v.Value)
			if m.kind == list {
				merged = append(merged, m.items...)
			} else {
				merged = append(merged, m)
			}
			continue
		}
		key := b.build(v.Key)
		if key.kind != scalar {
			b.fail(key.line, "a key must be a plain word")
			continue
		}
		out.pairs = append(out.pairs, pair{key: key.text, line: key.line, value: b.build(v.Value)})
	}
	for _, m := range merged {
		if m.kind != object {
			b.fail(m.line, "only an object can be merged")
			continue
		}
		for _, p := range m.pairs {
			if out.get(p.key) == nil {
				out.pairs = append(out.pairs, p)
			}
		}
	}
	return out
}

func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}
