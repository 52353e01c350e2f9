// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
)

// ports gives out loopback ports that stay reserved until release, also while nothing listens on them: a stopped API
// server must find its port again.
type ports struct {
	mu       sync.Mutex
	reserved map[int]net.Listener
}

// Ports are taken from below Linux' ephemeral range (net.ipv4.ip_local_port_range, 32768 by default): an outgoing
// connection must not take the port of a stopped API server.
const firstPort, lastPort = 18000, 32000

// take reserves a port. Benches of other processes are kept away by an abstract Unix socket, which ends with its
// process; only Linux has these.
func (p *ports) take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort) // #nosec G404 -- not a secret
		if _, ok := p.reserved[port]; ok {
			continue
		}
		var claim net.Listener
		if runtime.GOOS == "linux" {
			var err error
			if claim, err = net.Listen("unix", "@hibernation-guard-bench-"+strconv.Itoa(port)); err != nil {
				continue
			}
		}
		probe, err := net.Listen("tcp", loopback(port))
		if err != nil {
			if claim != nil {
				_ = claim.Close()
			}
			continue
		}
		_ = probe.Close()
		if p.reserved == nil {
			p.reserved = map[int]net.Listener{}
		}
		p.reserved[port] = claim
		return port, nil
	}
	return 0, fmt.Errorf("failed to find a free port between %d and %d", firstPort, lastPort)
}

// give returns ports that are no longer needed.
func (p *ports) give(used ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range used {
		if claim := p.reserved[port]; claim != nil {
			_ = claim.Close()
		}
		delete(p.reserved, port)
	}
}

// close returns all ports.
func (p *ports) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, claim := range p.reserved {
		if claim != nil {
			_ = claim.Close()
		}
	}
	p.reserved = nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
