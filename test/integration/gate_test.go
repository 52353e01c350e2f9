// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// gate is what the kubeconfig on the seed names as the Shoot's API server. Of the one real API server it shows only what
// carries the Shoot's label; it notes every request, and fails as it is told.
type gate struct {
	server   *httptest.Server
	selector string

	mu          sync.Mutex
	down        bool
	knocks      int // connections that were tried while it was down
	connections map[net.Conn]bool
	requests    []*request
	faults      []*fault
	before      func(request)
}

// request to the Shoot's API server.
type request struct {
	user                                  string
	verb, resource, namespace, name, body string // resource of a request that is about none is its path
	at                                    time.Time
	code                                  int // 0 until it is answered
}

func (r request) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.verb)
}

// fault answers in place of the API server as long as it has times left.
type fault struct {
	match  func(request) bool
	answer func(http.ResponseWriter, *http.Request)
	times  int
	hits   int
}

const always = 1 << 30

var requestInfos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// newGate opens a gate to the API server of config, for objects that the selector selects.
func newGate(config *rest.Config, selector string) (*gate, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	g := &gate{selector: selector, connections: map[net.Conn]bool{}}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	g.server = httptest.NewUnstartedServer(g.handler(proxy))
	g.server.Listener = listener{g.server.Listener, g}
	g.server.EnableHTTP2 = true
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.Config.ConnState = g.count
	g.server.StartTLS()
	return g, nil
}

func (g *gate) close() {
	g.shut()
	g.server.Close()
}

// certificate is what the gate is trusted by.
func (g *gate) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
}

// listener turns connections away while the gate is down.
type listener struct {
	net.Listener
	gate *gate
}

func (l listener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil || !l.gate.turnsAway() {
			return connection, err
		}
		_ = connection.Close()
	}
}

func (g *gate) turnsAway() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		g.knocks++
	}
	return g.down
}

func (g *gate) count(connection net.Conn, state http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch state {
	case http.StateNew:
		g.connections[connection] = true
	case http.StateClosed, http.StateHijacked:
		delete(g.connections, connection)
	}
}

// shut ends every connection and lets none in, as an API server that ends.
func (g *gate) shut() {
	g.mu.Lock()
	g.down = true
	g.mu.Unlock()
	g.cut()
}

// open lets connections in again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = false
}

// cut ends every connection.
func (g *gate) cut() { g.server.CloseClientConnections() }

// openConnections and knocked say who is, or tried to get, in.
func (g *gate) openConnections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.connections)
}

func (g *gate) knocked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.knocks
}

// seen are the requests that match, in their order.
func (g *gate) seen(match func(request) bool) []request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []request
	for _, r := range g.requests {
		if match(*r) {
			found = append(found, *r)
		}
	}
	return found
}

// forget starts a new list of requests.
func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = nil
}

// fails answers requests that match in place of the API server, so many times, until mend is called.
func (g *gate) fails(times int, answer func(http.ResponseWriter, *http.Request), match func(request) bool) *fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := &fault{match: match, answer: answer, times: times}
	g.faults = append(g.faults, f)
	return f
}

func (g *gate) mend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = nil
}

func (g *gate) hits(f *fault) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return f.hits
}

// asks calls do before each request, which waits for it.
func (g *gate) asks(do func(request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = do
}

func (g *gate) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := requestInfos.NewRequestInfo(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if info.IsResourceRequest && info.Name == "" && r.Method == http.MethodGet {
			g.narrow(r)
		}
		if !info.IsResourceRequest {
			info.Resource = info.Path
		}
		noted := &request{
			user: userOf(r), verb: info.Verb, resource: info.Resource, namespace: info.Namespace, name: info.Name, body: string(body), at: time.Now(),
		}
		broken, before := g.note(noted)
		if before != nil {
			before(*noted)
		}
		answer := http.HandlerFunc(next.ServeHTTP)
		if broken != nil {
			answer = broken.answer
		}
		answer(&noting{w, g, noted}, r)
	})
}

// userOf is whom the token is for.
func userOf(r *http.Request) string {
	parts := strings.Split(r.Header.Get("Authorization"), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct{ Sub string }
	_ = json.Unmarshal(payload, &claims) // nobody, if it is no token
	return claims.Sub
}

// narrow adds the Shoot's selector to a list or watch.
func (g *gate) narrow(r *http.Request) {
	query := r.URL.Query()
	if also := query.Get("labelSelector"); also != "" {
		query.Set("labelSelector", also+","+g.selector)
	} else {
		query.Set("labelSelector", g.selector)
	}
	r.URL.RawQuery = query.Encode()
}

func (g *gate) note(r *request) (*fault, func(request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = append(g.requests, r)
	for _, f := range g.faults {
		if f.hits < f.times && f.match(*r) {
			f.hits++
			return f, g.before
		}
	}
	return nil, g.before
}

// noting notes the code of the answer.
type noting struct {
	http.ResponseWriter
	gate    *gate
	request *request
}

func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noting) WriteHeader(code int) {
	n.gate.mu.Lock()
	n.request.code = code
	n.gate.mu.Unlock()
	n.ResponseWriter.WriteHeader(code)
}

// answers is an API server's answer with a code of its own accord.
func answers(code int32, reason metav1.StatusReason, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		})
	}
}

// hangs never answers.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// breaks ends the connection in the middle of the request.
func breaks(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
