package api

// made are the pages after every edition was read.
type made struct {
	*pages
	openAPIDocument []byte
	editions        map[string]*edition
}

func madePages(o Options, rateLimit int) (*made, error) {
	p := newPages(o, rateLimit)
	m := &made{p, p.openAPIDocument(), map[string]*edition{}}
	var err error
	for language, of := range p.editions {
		if m.editions[language], err = of(); err != nil {
			return nil, err
		}
	}
	return m, nil
}
