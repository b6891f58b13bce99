// Command lint checks Kubernetes manifests with the Go types of the API that decode them: a field that a type does not have,
// one that is written twice, a number for a string and a quantity that is none are wrong, and so is a reference to something
// that the manifests do not have. It needs no cluster and no network.
//
//	kustomize build FOLDER | lint
//
// It prints a line for each thing that is wrong and exits with 1 if there is any. It is a module of its own, so that the
// gateway's has none of what it needs.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	var wrong []string
	if err == nil {
		wrong, err = manifests(text)
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
