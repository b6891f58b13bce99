package configs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"intumwa/billing/ebms"
	"intumwa/billing/orders"
)

// maxEBMSPassword is the longest password of the eBMS.
const maxEBMSPassword = 30

// Sales are the options of orders. The configuration has been checked.
func (c *Config) Sales() orders.Options {
	options := c.Operator.Sales()
	options.EBMS = c.EBMS.System()
	return options
}

// System is the id of this system at the tax office; empty without a URL.
func (e *EBMS) System() string {
	if e.URL == "" {
		return ""
	}
	return e.SystemID
}

// Access returns how the eBMS is reached. It reads the files.
func (e *EBMS) Access() (a ebms.Access, err error) {
	a = ebms.Access{URL: e.URL, Username: e.Username}
	if a.Password, err = e.password(); err != nil {
		return a, fmt.Errorf("password_file: %w", err)
	}
	if a.CA, err = e.authorities(); err != nil {
		return a, fmt.Errorf("ca: %w", err)
	}
	return a, nil
}

func (e *EBMS) password() (string, error) {
	file, err := os.Open(e.PasswordFile)
	if err != nil {
		return "", withoutPath(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, 1<<10))
	if err != nil {
		return "", withoutPath(err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if n := utf8.RuneCountInString(password); n < 1 || n > maxEBMSPassword || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("must have one line of 1-%d characters", maxEBMSPassword)
	}
	return password, nil
}

// authorities are those of the machine and of the file; nil without a file.
func (e *EBMS) authorities() (*x509.CertPool, error) {
	if e.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(e.CA)
	if err != nil {
		return nil, withoutPath(err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("holds no certificate in PEM")
	}
	return pool, nil
}

func (k *checker) ebms(c *Config) {
	e := &c.EBMS
	for _, f := range []struct{ key, value string }{{"username", e.Username}, {"password_file", e.PasswordFile},
		{"system_id", e.SystemID}} {
		switch {
		case e.URL == "" && f.value != "":
			k.problem("ebms.url", "is required with ebms.%s", f.key)
		case e.URL != "" && f.value == "":
			k.problem("ebms."+f.key, "is required with ebms.url")
		}
	}
	if e.URL == "" {
		return
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		k.problem("ebms.url", "must be https://host:port and nothing else")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		k.problem("ebms.url", "must be https://, except to this machine: the password would cross the network readable")
	}
	if strings.ContainsFunc(e.SystemID, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		k.problem("ebms.system_id", "must have printable ASCII characters, without / and spaces")
	}
	k.reportable(c)
	if k.needs("ebms.password_file") && e.PasswordFile != "" {
		if _, err := e.password(); err != nil {
			k.problem("ebms.password_file", "%s", err)
		}
	}
	if k.needs("ebms.ca") {
		if _, err := e.authorities(); err != nil {
			k.problem("ebms.ca", "%s", err)
		}
	}
}

// reportable checks that the eBMS would take invoices of the operator.
func (k *checker) reportable(c *Config) {
	for i := range c.Operator.Taxes {
		tax, err := c.Operator.Taxes[i].sale()
		if err == nil && tax.EBMS == "" && (tax.Rate != 0 || tax.PerSMS != 0) {
			k.problem(fmt.Sprintf("operator.taxes[%d]", i), "needs ebms with ebms.url: vat, ct, tl, ott or tsce")
		}
	}
	sales := c.Sales()
	if sales.Seller == nil {
		k.problem("operator.invoices", "is required with ebms.url")
		return
	}
	seller := sales.Seller.EBMS()
	if err := seller.Check(); err != nil {
		k.problem("operator.invoices", "the eBMS would refuse it: %s", err)
	}
	id := ebms.Identifier(seller.NIF, c.EBMS.SystemID, time.Time{}, orders.Name(orders.Sale, 1_000_000))
	if len(id) > ebms.MaxIdentifier {
		k.problem("ebms.system_id", "makes identifiers of %d characters, and the eBMS takes %d", len(id), ebms.MaxIdentifier)
	}
}
