// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package shoot

import (
	"io"
	"net/http"
	"strconv"
	"sync"
)

// streams knows which watches of a cache are open. A cache goes on answering when one of them was lost or is refused, and what
// it holds would be taken for how things are.
type streams struct {
	mu   sync.Mutex
	open map[string]*stream // by path, nil while it is asked for
}

// stream is the body of the answer to a watch.
type stream struct {
	io.ReadCloser
	streams *streams
	path    string
}

// allOpen says whether every watch that was asked for is open.
func (s *streams) allOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		if open == nil {
			return false
		}
	}
	return true
}

func (s *streams) set(path string, open *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[path] = open
}

// observe notes the watches among the requests.
func (s *streams) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); !watch {
			return next.RoundTrip(r)
		}
		s.set(r.URL.Path, nil)
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			body := &stream{ReadCloser: response.Body, streams: s, path: r.URL.Path}
			s.set(r.URL.Path, body)
			response.Body = body
		}
		return response, err
	})
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil {
		s.ended()
	}
	return n, err
}

func (s *stream) Close() error {
	s.ended()
	return s.ReadCloser.Close()
}

// ended notes the end, unless the watch is open anew already.
func (s *stream) ended() {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	if s.streams.open[s.path] == s {
		s.streams.open[s.path] = nil
	}
}
