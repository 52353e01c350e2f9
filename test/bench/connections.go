// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// established is TCP_ESTABLISHED in /proc/net/tcp (Linux, include/net/tcp_states.h).
const tcpEstablished = "01"

// Connections counts the established TCP connections that process pid has to this API server, from Linux' /proc. A
// part of this process has no pid of its own: use Audit.OpenWatches for its watches.
func (c *ControlPlane) Connections(pid int) (int, error) {
	sockets, err := socketsOf(pid)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, table := range []string{"tcp", "tcp6"} {
		inodes, err := connectedTo(filepath.Join("/proc", strconv.Itoa(pid), "net", table), c.apiPort)
		if err != nil {
			return 0, err
		}
		for _, inode := range inodes {
			if sockets[inode] {
				count++
			}
		}
	}
	return count, nil
}

// socketsOf returns the inodes of a process' sockets.
func socketsOf(pid int) (map[string]bool, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("failed to read file descriptors: %w", err)
	}
	sockets := map[string]bool{}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return sockets, nil
}

// connectedTo returns the inodes of the sockets in a table of /proc/net that are connected to a port.
func connectedTo(table string, port int) ([]string, error) {
	file, err := os.Open(table) // #nosec G304 -- below /proc
	if err != nil {
		return nil, fmt.Errorf("failed to read connections: %w", err)
	}
	defer file.Close()
	remote := fmt.Sprintf(":%04X", port)
	var inodes []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[3] == tcpEstablished && strings.HasSuffix(fields[2], remote) {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes, lines.Err()
}
