package configs

import (
	"net"
	"net/mail"
	"net/netip"
	"net/url"
)

func (k *checker) dashboard(d *Dashboard) {
	for _, u := range []struct{ key, text string }{{"dashboard.public_url", d.PublicURL}, {"dashboard.docs_url", d.DocsURL}} {
		if u.text == "" {
			continue
		}
		parsed, err := url.Parse(u.text)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
			k.problem(u.key, "must be an address such as https://sms.example.com")
		}
	}
	if u, err := url.Parse(d.PublicURL); err == nil && !d.SecureCookies && d.PublicURL != "" && !loopback(u.Hostname()) {
		k.problem("dashboard.secure_cookies", "can be false only while dashboard.public_url is on this machine (http://localhost, http://127.0.0.1)")
	}
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func (k *checker) mail(c *Config) {
	m := &c.Mail
	if m.Server != "" {
		if err := remote(m.Server); err != nil {
			k.problem("mail.server", "%s", err)
		}
		if _, err := mail.ParseAddress(m.From); err != nil {
			k.problem("mail.from", "must be an address such as Intumwa <no-reply@example.com>")
		}
		if m.TLS == "none" && m.Password != "" {
			if host, _, _ := net.SplitHostPort(string(m.Server)); !loopback(host) {
				k.problem("mail.tls", "cannot be none with a password: it would go out readable")
			}
		}
	}
	if host, _, err := net.SplitHostPort(c.Dashboard.Listen); m.Server != "" && c.Dashboard.PublicURL == "" && err == nil && !loopback(host) {
		k.problem("dashboard.public_url", "is required with mail.server: the links in mails begin with it")
	}
	if m.Server == "" && (m.Username != "" || m.Password != "") {
		k.problem("mail.server", "is required with mail.username or mail.password")
	}
}
