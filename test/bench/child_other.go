// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bench

import "syscall"

// childAttributes puts a child into a process group of its own, so that Ctrl-C in a terminal reaches it only through
// Close.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
