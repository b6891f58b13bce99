package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

func compareFiles(to io.Writer, files []string) error {
	if len(files) != 2 {
		return errors.New("-compare wants two reports, the older first")
	}
	var reports [2]report
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &reports[i])
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	return compare(to, reports[0], reports[1])
}

// compare prints, figure by figure, how many times the old one the new one is.
// Where the runs of both overlap, the difference may be chance, and ~ says so.
func compare(to io.Writer, old, now report) error {
	fmt.Fprintf(to, "old: %s, %s, load %s\nnew: %s, %s, load %s\n", old.Commit, old.At, old.Load, now.Commit, now.At, now.Load)
	common := 0
	for _, after := range now.Results {
		at := slices.IndexFunc(old.Results, func(r result) bool { return r.Name == after.Name })
		if at < 0 {
			continue
		}
		common++
		fmt.Fprintf(to, "\n%-40s %10s %10s %8s\n", after.Name, "old", "new", "new/old")
		for _, f := range after.Figures {
			i := slices.IndexFunc(old.Results[at].Figures, func(g figure) bool { return g.Name == f.Name })
			if i < 0 {
				continue
			}
			before := old.Results[at].Figures[i]
			ratio, chance := "–", ""
			if before.Median != 0 {
				ratio = fmt.Sprintf("%.2f", f.Median/before.Median)
			}
			if f.Low <= before.High && before.Low <= f.High {
				chance = "~"
			}
			fmt.Fprintf(to, "  %-38s %10s %10s %8s %1s %s\n", f.Name, number(before.Median), number(f.Median), ratio, chance, f.Unit)
		}
	}
	if common == 0 {
		return errors.New("the reports have no scenario in common")
	}
	return nil
}
