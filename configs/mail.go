package configs

import (
	"errors"
	"net/url"
	"strings"
)

// MailServer is the server in mail.url.
type MailServer struct {
	Address            string
	Username, Password string
	TLS                string // starttls, tls or none
}

// Server parses mail.url; zero if it is empty.
func (m *Mail) Server() (server MailServer, err error) {
	if m.URL == "" {
		return MailServer{}, nil
	}
	wrong := errors.New(
		"must be smtp://user:password@host:port or smtps://; in the password write / as %2F, ? as %3F, # " +
			"as %23 and @ as %40")
	u, err := url.Parse(string(m.URL))
	if err != nil || !plainAddress.MatchString(u.Host) || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return MailServer{}, wrong
	}
	server.Address, server.Username = u.Host, u.User.Username()
	server.Password, _ = u.User.Password()
	switch {
	case u.Scheme == "smtps":
		server.TLS = "tls"
	case u.Scheme == "smtp" && loopback(u.Hostname()):
		server.TLS = "none"
	case u.Scheme == "smtp":
		server.TLS = "starttls"
	default:
		return MailServer{}, wrong
	}
	return server, nil
}
