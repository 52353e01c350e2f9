// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import "syscall"

// childAttributes puts a child into a process group of its own, so that Ctrl-C in a terminal reaches it only through
// Close, and has the kernel end it if this process dies. The parent-death signal is bound to the thread that forked:
// see spawner.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
