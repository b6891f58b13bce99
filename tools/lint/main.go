// Command lint renders a Helm chart and checks what comes out: with Helm's own rules and the chart's schema, and with
// the Go types of the Kubernetes API. It finds unknown and repeated fields, wrong types, invalid quantities, and
// references to objects that the chart lacks. It needs no cluster and no network.
//
//	lint [-print] CHART [VALUES...]
//
// It prints one line per finding and exits with 1 if there is any; with -print it prints the manifests instead. It is a
// separate module to keep its dependencies out of the gateway's.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	show := flag.Bool("print", false, "print the manifests")
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: lint [-print] CHART [VALUES...]")
		os.Exit(2)
	}
	text, wrong, err := render(flag.Arg(0), flag.Args()[1:])
	if err == nil && *show {
		_, err = os.Stdout.Write(text)
	} else if err == nil {
		var more []string
		more, err = manifests(text)
		wrong = append(wrong, more...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	for _, each := range wrong {
		fmt.Println(each)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}
