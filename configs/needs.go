package configs

import (
	"reflect"
	"slices"
	"strings"
)

// Mistakes returns the mistakes in what the file and the environment give, of all roles together but their missing secrets:
// for a command that does without the keys that have them.
func (c *Config) Mistakes() []Problem {
	given := slices.DeleteFunc(c.Check(), func(p Problem) bool { return p.Line == 0 && !fromOutside(c.foreign, p.Key) })
	return slices.Concat(c.problems, given)
}

// Needs returns the mistakes in sections as [Problems]: top-level keys ("carriers" without the links, which are "links"). A
// key with a mistake has its default, so whoever has not checked the configuration calls it before it uses keys.
func (c *Config) Needs(sections ...string) error {
	var found Problems
	checked := slices.DeleteFunc(c.Check(), func(p Problem) bool { return p.Key == "carriers" }) // a command can do without any
	for _, p := range slices.Concat(c.problems, checked) {
		if slices.ContainsFunc(sections, p.in) {
			found = append(found, p)
		}
	}
	return found.orNil()
}

// in reports whether the problem is in a section, or may be.
func (p Problem) in(section string) bool {
	if variable, ok := strings.CutPrefix(p.Key, envPrefix+"_"); ok {
		if section == "links" || section == "carriers" {
			return strings.HasPrefix(variable, "CARRIERS_") && strings.Contains(variable, "_LINKS_") == (section == "links")
		}
		return variable == strings.ToUpper(section) || strings.HasPrefix(variable, strings.ToUpper(section)+"_")
	}
	if strings.Contains(p.Key, ".links[") || strings.HasSuffix(p.Key, ".links") {
		return section == "links"
	}
	name := p.Key[:max(0, strings.IndexAny(p.Key+".", ".["))]
	// A name that is no section's may be meant to be this one's.
	return name == section || section != "database" && !isKey(reflect.TypeFor[Config](), name)
}

// isKey reports whether an object has a key.
func isKey(of reflect.Type, key string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(of), func(f reflect.StructField) bool { return key != "" && keyOf(f) == key })
}
