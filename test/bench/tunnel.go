// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Tunnel is the HTTP CONNECT proxy between the Shoot's API server and the Shoot's network, over TLS with client
// certificates, as the VPN of Gardener. A target is the IP of a pod and a container port; behind it is a loopback port
// of the pod's process. It works while it is mended and a pod of vpn-shoot runs; without one, packets are lost.
type Tunnel struct {
	log      logr.Logger
	listener net.Listener
	tls      *tls.Config
	serving  sync.WaitGroup

	mu        sync.Mutex
	mode      mode
	changed   chan struct{} // closed and renewed at each change of what follows
	connected int           // running vpn-shoot processes
	targets   map[string]map[int32]int
	open      map[net.Conn]bool // accepted connections; true: a CONNECT was answered on it
	closed    bool
}

type mode int

const (
	mended mode = iota
	cut
	hanging
	blackHole
)

// lost is the loopback port of a target whose machine is gone: packets to it get no answer.
const lost = -1

// newTunnel listens on port and returns what an API server needs to use the tunnel.
func newTunnel(port int, log logr.Logger) (*Tunnel, *egress, error) {
	ca, err := newAuthority("vpn")
	if err != nil {
		return nil, nil, err
	}
	serving, err := ca.server("vpn-seed-server")
	if err != nil {
		return nil, nil, err
	}
	client, err := ca.client("kube-apiserver-http-proxy")
	if err != nil {
		return nil, nil, err
	}
	certificate, err := serving.tls()
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, nil, fmt.Errorf("failed to listen: %w", err)
	}
	t := &Tunnel{
		log: log, listener: listener, changed: make(chan struct{}),
		targets: map[string]map[int32]int{}, open: map[net.Conn]bool{},
		tls: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
		},
	}
	t.serving.Go(t.accept)
	return t, &egress{proxy: loopback(port), ca: ca.pem, client: client}, nil
}

// Cut has the tunnel refuse: CONNECT is answered with 503, established connections are closed.
func (t *Tunnel) Cut() {
	t.set(cut)
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn, established := range t.open {
		if established {
			_ = conn.Close()
		}
	}
}

// Hang has the tunnel accept CONNECT and never answer; established connections stall.
func (t *Tunnel) Hang() { t.set(hanging) }

// BlackHole has the way to the tunnel lose all packets: not even the TLS handshake with it is answered; established
// connections stall.
func (t *Tunnel) BlackHole() { t.set(blackHole) }

// Mend ends Cut, Hang and BlackHole. Stalled connections go on if they still exist, waiting ones are served.
func (t *Tunnel) Mend() { t.set(mended) }

// Works says whether the tunnel is mended and connected.
func (t *Tunnel) Works() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mode == mended && t.connected > 0
}

func (t *Tunnel) set(m mode) { t.update(func() { t.mode = m }) }

// connect counts vpn-shoot processes: +1 for one that begins, -1 for one that ends.
func (t *Tunnel) connect(change int) { t.update(func() { t.connected += change }) }

// mapPod makes the container ports of a pod reachable under its IP.
func (t *Tunnel) mapPod(ip string, ports map[int32]int) { t.update(func() { t.targets[ip] = ports }) }

// unmapPod has calls to a pod's IP refused.
func (t *Tunnel) unmapPod(ip string) { t.update(func() { delete(t.targets, ip) }) }

// losePod has calls to a pod's IP time out.
func (t *Tunnel) losePod(ip string) {
	t.update(func() {
		for port := range t.targets[ip] {
			t.targets[ip][port] = lost
		}
	})
}

func (t *Tunnel) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	close(t.changed)
	t.changed = make(chan struct{})
}

// target is the IP in an address and the loopback port behind the address: 0 if there is none, lost if packets to it
// get lost.
func (t *Tunnel) target(address string) (string, int) {
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return "", 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return ip, t.targets[ip][int32(number)]
}

// passes says whether packets to and from a pod's IP get through. The caller holds t.mu.
func (t *Tunnel) passes(ip string) bool {
	if t.mode != mended || t.connected == 0 {
		return false
	}
	for _, port := range t.targets[ip] {
		if port == lost {
			return false
		}
	}
	return true
}

// await blocks until pass is true of the tunnel's state and returns false if the tunnel is closed before. pass is
// called with t.mu held.
func (t *Tunnel) await(pass func() bool) bool {
	for {
		t.mu.Lock()
		passed, closed, changed := pass(), t.closed, t.changed
		t.mu.Unlock()
		if closed || passed {
			return !closed
		}
		<-changed
	}
}

func (t *Tunnel) accept() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return // closed
		}
		if !t.track(conn, false) {
			_ = conn.Close()
			continue
		}
		t.serving.Go(func() {
			defer t.untrack(conn)
			if err := t.serve(conn); err != nil {
				t.log.V(1).Info("Tunnelled connection ended", "reason", err.Error())
			}
		})
	}
}

func (t *Tunnel) track(conn net.Conn, established bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || (established && t.mode == cut) {
		return false
	}
	t.open[conn] = established
	return true
}

func (t *Tunnel) untrack(conn net.Conn) {
	_ = conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, conn)
}

// serve answers one CONNECT and then copies until either side ends.
func (t *Tunnel) serve(raw net.Conn) error {
	if !t.await(func() bool { return t.mode != blackHole }) {
		return errors.New("tunnel closed")
	}
	conn := tls.Server(raw, t.tls)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return fmt.Errorf("failed to read request: %w", err)
	}
	_ = conn.SetDeadline(time.Time{})
	if request.Method != http.MethodConnect {
		return refuse(conn, http.StatusMethodNotAllowed)
	}
	// Lost packets and a hanging tunnel look alike from here on. With no vpn-shoot connected nothing is refused either:
	// the server end of a VPN drops what it has no route for.
	var refused bool
	if !t.await(func() bool {
		refused = t.mode == cut
		return refused || t.passes("")
	}) {
		return errors.New("tunnel closed")
	}
	ip, port := t.target(request.Host)
	if port == lost && !refused {
		t.await(func() bool { return t.mode == cut })
	}
	if refused || port <= 0 {
		return refuse(conn, http.StatusServiceUnavailable)
	}
	return t.join(raw, conn, ip, port)
}

// refuse answers as net/http does, whose text the API server repeats: `code 503: 503 Service Unavailable`.
func refuse(conn net.Conn, code int) error {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", code, http.StatusText(code))
	return err
}

// join connects an API server's connection with a loopback port.
func (t *Tunnel) join(raw net.Conn, conn *tls.Conn, ip string, port int) error {
	backend, err := net.DialTimeout("tcp", loopback(port), time.Second)
	if err != nil || !t.track(raw, true) {
		if backend != nil {
			_ = backend.Close()
		}
		return refuse(conn, http.StatusServiceUnavailable)
	}
	if _, err := fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = backend.Close()
		return err
	}
	// Whichever side ends first ends the other, but not through a stalled tunnel: a copy that ends waits for it.
	done := make(chan struct{}, 2)
	forward := func(to, from net.Conn) {
		t.copy(to, from, ip)
		done <- struct{}{}
	}
	t.serving.Go(func() { forward(backend, conn) })
	t.serving.Go(func() { forward(conn, backend) })
	<-done
	_ = raw.Close()
	_ = backend.Close()
	<-done
	return nil
}

// copy forwards while packets of the pod get through and holds what it has read, the end of a connection included,
// while they do not.
func (t *Tunnel) copy(to, from net.Conn, ip string) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !t.await(func() bool { return t.mode == cut || t.passes(ip) }) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// close ends the listener and all connections and returns when nothing of the tunnel is left.
func (t *Tunnel) close() {
	_ = t.listener.Close()
	t.update(func() { t.closed = true })
	t.mu.Lock()
	for conn := range t.open {
		_ = conn.Close()
	}
	t.mu.Unlock()
	t.serving.Wait()
}
