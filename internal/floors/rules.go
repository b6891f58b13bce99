// Package floors checks every import against two tables of docs/layout.md: imports go down only, rooms on one floor
// never import each other, and every outside library enters by its own door.
package floors

import (
	"fmt"
	"strconv"
	"strings"
)

// Anywhere stands in the tables for every room.
const Anywhere = "anywhere"

// Rules is the plan of the house.
type Rules struct {
	Floors map[string]int  // room (folder below the module's root) → floor
	Tests  map[string]bool // rooms that any test may import from any floor, and no product code
	Doors  map[string]Door // import path of a library, or a prefix of it → where it may enter
}

// Door says which rooms may import a library: in product code, and in test
// code besides. Anywhere opens it to all.
type Door struct {
	Product, Test map[string]bool
}

// ParseRules reads the first table under "## Floors" (floor, rooms, rooms for
// tests) and the first under "## Doors" (library, product code, test code
// also). Rooms and libraries stand in backquotes; other words in a cell are for
// the reader.
func ParseRules(markdown string) (*Rules, error) {
	rules := &Rules{Floors: map[string]int{}, Tests: map[string]bool{}, Doors: map[string]Door{}}
	rows, err := table(markdown, "## Floors", 3)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		floor, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("the floors table: floor %q is not a number", row[0])
		}
		tests := quoted(row[2])
		for _, room := range append(quoted(row[1]), tests...) {
			if _, twice := rules.Floors[room]; twice {
				return nil, fmt.Errorf("the floors table: room %s stands there twice", room)
			}
			rules.Floors[room] = floor
		}
		for _, room := range tests {
			rules.Tests[room] = true
		}
	}
	rows, err = table(markdown, "## Doors", 3)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		for _, library := range quoted(row[0]) {
			door := Door{Product: set(row[1]), Test: set(row[2])}
			for _, room := range append(quoted(row[1]), quoted(row[2])...) {
				if _, known := rules.Floors[room]; !known {
					return nil, fmt.Errorf("the doors table: %s may enter by %s, which is on no floor", library, room)
				}
			}
			rules.Doors[library] = door
		}
	}
	return rules, nil
}

// table returns the cells below the header of the first table in a section.
func table(markdown, heading string, columns int) ([][]string, error) {
	_, section, found := strings.Cut("\n"+markdown, "\n"+heading+"\n")
	if !found {
		return nil, fmt.Errorf("there is no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != columns {
			return nil, fmt.Errorf("%s: a row with %d cells instead of %d: %s", heading, len(cells), columns, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		return nil, fmt.Errorf("section %q has no table with a header and a row", heading)
	}
	return rows[2:], nil // past the header and its rule
}

// quoted are the words of a cell that stand in backquotes.
func quoted(cell string) []string {
	var words []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

func set(cell string) map[string]bool {
	rooms := map[string]bool{}
	for _, room := range quoted(cell) {
		rooms[room] = true
	}
	if cell == Anywhere {
		rooms[Anywhere] = true
	}
	return rooms
}

// room is the room a folder belongs to: itself, or the nearest one above it.
func (r *Rules) room(folder string) (string, bool) {
	for {
		if _, ok := r.Floors[folder]; ok {
			return folder, true
		}
		cut := strings.LastIndexByte(folder, '/')
		if cut < 0 {
			return "", false
		}
		folder = folder[:cut]
	}
}

// door is the row for an import path, the longest that fits, and its library.
func (r *Rules) door(path string) (string, Door, bool) {
	library := path
	for {
		if door, ok := r.Doors[library]; ok {
			return library, door, true
		}
		cut := strings.LastIndexByte(library, '/')
		if cut < 0 {
			return "", Door{}, false
		}
		library = library[:cut]
	}
}
