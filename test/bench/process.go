// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// childProcess is a Process of its own.
type childProcess struct {
	*child
	ports map[int32]int
}

func (p childProcess) Ports() map[int32]int { return p.ports }

// serverProcess is a Process inside this one: an HTTP server on a loopback port.
type serverProcess struct {
	server *http.Server
	ports  map[int32]int
	end    sync.Once
	done   chan struct{}
}

// serveInProcess serves handler as the container port port, over TLS if config is given.
func serveInProcess(port int32, config *tls.Config, handler http.Handler) (*serverProcess, error) {
	listener, loopbackPort, err := listenLoopback()
	if err != nil {
		return nil, err
	}
	p := &serverProcess{
		server: &http.Server{Handler: handler, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second, ErrorLog: discard},
		ports:  map[int32]int{port: loopbackPort},
		done:   make(chan struct{}),
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	go func(l net.Listener) { _ = p.server.Serve(l) }(listener) // ends with Stop or Kill
	return p, nil
}

func (p *serverProcess) Ports() map[int32]int  { return p.ports }
func (p *serverProcess) Pid() int              { return 0 }
func (p *serverProcess) Done() <-chan struct{} { return p.done }

// Stop finishes what is being answered within grace.
func (p *serverProcess) Stop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = p.server.Shutdown(ctx)
	p.Kill()
}

func (p *serverProcess) Kill() {
	_ = p.server.Close()
	p.end.Do(func() { close(p.done) })
}
