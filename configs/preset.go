package configs

import (
	"strconv"
	"strings"
)

// presets are the values of carriers[].profile: what SMSCs of a kind want in common, for the keys of a carrier and of
// its links ("links."). strict_3_4 is the defaults.
var presets = map[string]map[string]string{
	"strict_3_4": {},
	// SMPP 3.3 has no transceiver, no optional parameters and no relative time.
	"old_3_3": {
		"links.interface_version": "0x33",
		"links.bind":              "transmitter_receiver",
		"user_message_reference":  "false",
		"validity_period":         "absolute",
	},
	// SMSCs and aggregators that take SMPP 3.4 and little of what it leaves open.
	"loose_3_4": {
		"receipts_without_esm_class": "true",
		"user_message_reference":     "false",
		"validity_period":            "none",
	},
}

// presets sets what a carrier's profile says to the keys that neither the file nor the environment has.
func (r *reader) presets(c *Config) {
	walk(c, func(l leaf) {
		carrier, key := carrierKey(c, l.path)
		if text, has := presets[carrier][key]; has && !r.given[l.path] {
			if err := set(l.value, text); err != nil {
				panic("the preset " + carrier + " of " + key + ": " + err.Error())
			}
		}
	})
}

// carrierKey splits the path of a carrier's key into that carrier's profile and the key, without indices:
// "carriers[0].links[1].bind" is "links.bind".
func carrierKey(c *Config, path string) (profile, key string) {
	rest, ok := strings.CutPrefix(path, "carriers[")
	if !ok {
		return "", ""
	}
	index, key, _ := strings.Cut(rest, "].")
	for i := range c.Carriers {
		if strconv.Itoa(i) == index {
			profile = c.Carriers[i].Profile
		}
	}
	if link, ok := strings.CutPrefix(key, "links["); ok {
		_, link, _ = strings.Cut(link, "].")
		key = "links." + link
	}
	return profile, key
}
