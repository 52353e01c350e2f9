// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package shoot

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// answering is an API server's answer to the next request.
type answering struct {
	code int
	err  error
	seen func()
}

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	if a.seen != nil {
		a.seen()
	}
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader("event"))}, a.err
}

func TestCacheIsTrustedOnlyWhileEachOfItsWatchesIsOpen(t *testing.T) {
	g := NewWithT(t)
	s := &streams{open: map[string]*stream{}}
	server := &answering{code: http.StatusOK}
	ask := func(path string) *http.Response {
		request, err := http.NewRequest(http.MethodGet, "https://shoot"+path, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, _ := s.observe(server).RoundTrip(request)
		return response
	}
	const pods, nodes = "/api/v1/pods?watch=true&resourceVersion=1", "/api/v1/nodes?watch=1"

	server.seen = func() { g.Expect(s.allOpen()).To(BeFalse(), "while a watch is asked for") }
	first := ask(pods)
	ask(nodes)
	server.seen = nil
	g.Expect(s.allOpen()).To(BeTrue())

	ask("/api/v1/pods?limit=500")
	server.code = http.StatusForbidden
	ask("/api/v1/services")
	g.Expect(s.allOpen()).To(BeTrue(), "other requests are no watches")

	ask(pods)
	g.Expect(s.allOpen()).To(BeFalse(), "one is refused")
	server.code, server.err = http.StatusOK, errors.New("connection refused")
	ask(pods)
	g.Expect(s.allOpen()).To(BeFalse(), "one cannot be asked for")
	server.err = nil
	second := ask(pods)
	g.Expect(first.Body.Close()).To(Succeed())
	g.Expect(s.allOpen()).To(BeTrue(), "the former one ended late")

	g.Expect(io.ReadAll(second.Body)).To(BeEquivalentTo("event"))
	g.Expect(s.allOpen()).To(BeFalse(), "one has ended")
	third := ask(pods)
	g.Expect(s.allOpen()).To(BeTrue())
	g.Expect(third.Body.Close()).To(Succeed())
	g.Expect(s.allOpen()).To(BeFalse(), "one was closed")
}
