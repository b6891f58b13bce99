package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// describeCmd writes what a package installs beside the program, from the table of commands.
type describeCmd struct {
	What string `arg:"" enum:"man,bash" help:"man: the manual page. bash: completion for bash."`
}

// Run writes the description.
func (c describeCmd) Run(p *program, app *kong.Kong) error {
	text := manualPage(app.Model)
	if c.What == "bash" {
		text = bashCompletion(app.Model)
	}
	_, err := io.WriteString(p.stdout, text)
	return err
}

// eachCommand calls do for every command that help shows, with the words that lead to it and its flags.
func eachCommand(node *kong.Node, words []string, inherited []*kong.Flag,
	do func(node *kong.Node, words []string, flags []*kong.Flag)) {
	flags := slices.Concat(inherited, node.Flags)
	do(node, words, flags)
	for _, child := range node.Children {
		if !child.Hidden {
			eachCommand(child, append(slices.Clone(words), child.Name), flags, do)
		}
	}
}

// roff escapes a text for a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// manualPage is intumwa(1). Its date is left out, so that a commit always gives the same page.
func manualPage(app *kong.Application) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	flagged := func(flags []*kong.Flag) {
		for _, flag := range flags {
			if flag.Hidden {
				continue
			}
			name := "--" + flag.Name
			if !flag.IsBool() || flag.PlaceHolder != "" {
				name += "=" + flag.FormatPlaceHolder()
			}
			say(".TP\n\\fB%s\\fR\n%s", roff(name), roff(flag.Help))
		}
	}
	say(`.TH INTUMWA 1 "" "intumwa %s" "Intumwa"`, roff(version))
	say(".SH NAME\nintumwa \\- %s", roff(strings.TrimSuffix(app.Help, ".")))
	say(".SH SYNOPSIS\n\\fBintumwa\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]")
	say(".SH GLOBAL FLAGS")
	flagged(app.Flags)
	say(".SH COMMANDS")
	eachCommand(app.Node, nil, nil, func(node *kong.Node, words []string, _ []*kong.Flag) {
		if len(words) == 0 {
			return
		}
		title := strings.Join(words, " ")
		for _, argument := range node.Positional {
			title += " " + argument.Summary()
		}
		say(".SS \"intumwa %s\"\n%s", roff(strings.ReplaceAll(title, `"`, "")), roff(node.Help))
		flagged(node.Flags)
	})
	say(
		".SH EXIT STATUS\n0: done. 1: the command failed; standard error has the reason. 2: the command line is not valid.")
	say(".SH FILES\n.TP\n\\fI/etc/intumwa/intumwa.yaml\\fR\nThe configuration. \\fBintumwa config sample\\fR " +
		"prints every key.")
	say(".TP\n\\fI/usr/share/doc/intumwa\\fR\nThe manual of a packaged installation; begin with README.md.")
	return b.String()
}

// bashCompletion completes commands, flags and their fixed values.
func bashCompletion(app *kong.Application) string {
	var paths []string
	var values, words strings.Builder
	eachCommand(app.Node, nil, nil, func(node *kong.Node, path []string, flags []*kong.Flag) {
		at := strings.Join(append([]string{""}, path...), " ")
		if len(path) > 0 {
			paths = append(paths, "'"+at+"'")
		}
		var next []string
		for _, child := range node.Children {
			if !child.Hidden {
				next = append(next, child.Name)
			}
		}
		for _, argument := range node.Positional {
			next = append(next, argument.EnumSlice()...)
		}
		for _, flag := range flags {
			if flag.Hidden {
				continue
			}
			next = append(next, "--"+flag.Name)
			if fixed := slices.DeleteFunc(flag.EnumSlice(), func(s string) bool { return s == "" }); len(fixed) > 0 {
				fmt.Fprintf(&values, "\t'%s --%s') words='%s' ;;\n", at, flag.Name, strings.Join(fixed, " "))
			}
		}
		fmt.Fprintf(&words, "\t'%s '*) words='%s' ;;\n", at, strings.Join(next, " "))
	})
	// A longer path is before its beginning: the first pattern that matches wins.
	lines := strings.SplitAfter(strings.TrimSuffix(words.String(), "\n"), "\n")
	slices.Reverse(lines)
	lines[0] += "\n"
	return `# Completion of intumwa for bash.
_intumwa() {
	local word path='' words='' current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "$path $word" in
		` + strings.Join(paths, " | \\\n\t\t\t") + `) path+=" $word" ;;
		esac
	done
	case "$path $previous" in
` + values.String() + strings.Join(lines, "") + `	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _intumwa intumwa
`
}
