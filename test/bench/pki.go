// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity of all certificates: longer than any run of a bench.
const validity = 30 * 24 * time.Hour

// authority is a certificate authority with ECDSA keys: RSA keys would cost seconds on a small machine.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("failed to generate key of %s: %w", name, err)
	}
	// The random part tells a rotated authority from the old one: equal subjects would be taken for the same issuer.
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: fmt.Sprintf("%s-%d", name, time.Now().UnixNano())}, key)
	if err != nil {
		return nil, fmt.Errorf("failed to sign authority %s: %w", name, err)
	}
	encoded, err := cert.EncodeCertificates(ca)
	if err != nil {
		return nil, fmt.Errorf("failed to encode authority %s: %w", name, err)
	}
	return &authority{cert: ca, key: key, pem: encoded}, nil
}

// pair is a certificate and its private key in PEM.
type pair struct{ cert, key []byte }

// client signs a client certificate: user is the common name, groups the organizations.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server signs a serving certificate for 127.0.0.1 and names.
func (a *authority) server(names ...string) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "server"},
		DNSNames:    append([]string{"localhost"}, names...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("failed to generate key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, fmt.Errorf("failed to generate serial number: %w", err)
	}
	template.SerialNumber = serial
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("failed to sign certificate: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("failed to parse signed certificate: %w", err)
	}
	certPEM, err := cert.EncodeCertificates(signed)
	if err != nil {
		return pair{}, fmt.Errorf("failed to encode certificate: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return pair{}, fmt.Errorf("failed to encode key: %w", err)
	}
	return pair{cert: certPEM, key: keyPEM}, nil
}

func (p pair) tls() (tls.Certificate, error) {
	loaded, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("failed to load certificate: %w", err)
	}
	return loaded, nil
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}
