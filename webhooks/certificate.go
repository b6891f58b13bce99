package webhooks

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// handshakeFault explains a failed TLS handshake to the endpoint's owner.
func handshakeFault(err error) string {
	var refused *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &refused) && errors.As(err, &unknown) && len(refused.UnverifiedCertificates) > 0 {
		return chainFault(refused.UnverifiedCertificates)
	}
	return excerptOf([]byte(err.Error()))
}

// chainFault explains why the certificates that a server sent lead to no authority that we know. Browsers load a
// missing intermediate certificate themselves, so the server's owner may not have noticed.
func chainFault(sent []*x509.Certificate) string {
	last := sent[0] // of the chain from the server's own certificate on; the rest may come in any order
	for range sent {
		for _, c := range sent {
			if bytes.Equal(last.RawIssuer, c.RawSubject) && !selfIssued(last) && last.CheckSignatureFrom(c) == nil {
				last = c
				break
			}
		}
	}
	switch {
	case last == sent[0] && selfIssued(last):
		return "the certificate is self-signed: no public authority has signed it"
	case selfIssued(last):
		return "the certificate chain ends at an authority that is not a public one: " + quoted(last.Subject.String())
	}
	return "the certificate chain is incomplete: the server does not send the intermediate certificate of " +
		quoted(last.Issuer.String()) +
		" (browsers find it themselves; install the full chain)"
}

func selfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }

// quoted returns a name from a certificate, short enough for a line of the log.
func quoted(name string) string {
	const most = 120
	runes := []rune(excerptOf([]byte(name)))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return string(runes)
}
