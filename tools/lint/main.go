// Command lint checks what is deployed, with the code of those who read it: Kubernetes
// manifests against the Go types of the API that decode them, a Dockerfile with the rules
// of BuildKit (docker build --check). It needs no cluster, no daemon and no network.
//
//	kustomize build FOLDER | lint manifests
//	lint dockerfile <FILE
//
// It prints a line for each thing that is wrong and exits with 1 if there is any. It is a
// module of its own, so that the gateway's has none of what it needs.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	checks := map[string]func(text []byte) ([]string, error){"manifests": manifests, "dockerfile": dockerfile}
	if len(os.Args) != 2 || checks[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: lint manifests|dockerfile <FILE")
		os.Exit(2)
	}
	text, err := io.ReadAll(os.Stdin)
	var wrong []string
	if err == nil {
		wrong, err = checks[os.Args[1]](text)
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
