// Command lint checks Kubernetes manifests with the API's Go types: it finds unknown and repeated fields, wrong types,
// invalid quantities, and references to objects that the manifests lack. It needs no cluster and no network.
//
//	kustomize build FOLDER | lint
//
// It prints one line per finding and exits with 1 if there is any. It is a separate module to keep its dependencies out
// of the gateway's.
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
