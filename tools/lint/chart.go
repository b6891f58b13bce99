package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const (
	release   = "intumwa"
	namespace = "intumwa"
)

// render returns the manifests of a chart with the values of files, later ones over earlier ones, and what Helm's own
// rules find in it.
func render(folder string, files []string) (text []byte, wrong []string, err error) {
	values := map[string]any{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		more, err := loader.LoadValues(bytes.NewReader(raw))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		values = loader.MergeMaps(values, more)
	}
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	whole, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: namespace,
		Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	made, err := engine.Render(chart, whole)
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if filepath.Ext(name) == ".yaml" && strings.TrimSpace(made[name]) != "" {
			fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, made[name])
		}
	}
	for _, message := range lint.RunAll(folder, values, namespace).Messages {
		if message.Severity >= support.WarningSev {
			wrong = append(wrong, message.Error())
		}
	}
	return out.Bytes(), wrong, nil
}
