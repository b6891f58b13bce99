package main

import (
	"context"
	"fmt"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/opencontainers/go-digest"
)

// dockerfile returns what `docker build --check` has to say, every rule of it.
func dockerfile(text []byte) (wrong []string, err error) {
	source := llb.NewSourceMap(nil, "Dockerfile", "dockerfile", text)
	source.Definition = &llb.Definition{} // where the file is from: nowhere that has to be built
	found, err := dockerfile2llb.DockerfileLint(context.Background(), text, dockerfile2llb.ConvertOpt{
		Config:       dockerui.Config{LinterConfig: &linter.Config{ExperimentalAll: true}},
		MetaResolver: anyImage{},
		SourceMap:    source,
	})
	if err != nil {
		return nil, err
	}
	if found.Error != nil {
		wrong = append(wrong, "Dockerfile: "+found.Error.Message)
	}
	for _, w := range found.Warnings {
		line := int32(0)
		if ranges := w.Location.GetRanges(); len(ranges) > 0 {
			line = ranges[0].Start.Line
		}
		wrong = append(wrong, fmt.Sprintf("Dockerfile:%d: %s: %s (%s)", line, w.RuleName, w.Detail, w.URL))
	}
	return wrong, nil
}

// anyImage is every base image: one of which nothing is known.
type anyImage struct{}

func (anyImage) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config := []byte(`{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"]}}`)
	return ref, digest.FromBytes(config), config, nil
}
