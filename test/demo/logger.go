// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/go-logr/logr"
)

// sink puts what the bench logs onto the timeline, as far as it is of use there.
type sink struct {
	timeline *timeline
	values   []any
}

func newLogger(t *timeline) logr.Logger { return logr.New(sink{timeline: t}) }

func (sink) Init(logr.RuntimeInfo)          {}
func (sink) Enabled(level int) bool         { return level == 0 }
func (s sink) WithName(string) logr.LogSink { return s }
func (s sink) Error(error, string, ...any)  {}
func (s sink) WithValues(kv ...any) logr.LogSink {
	s.values = append(append([]any(nil), s.values...), kv...)
	return s
}

func (s sink) Info(_ int, message string, kv ...any) {
	values := map[string]string{}
	all := append(append([]any(nil), s.values...), kv...)
	for i := 0; i+1 < len(all); i += 2 {
		values[fmt.Sprint(all[i])] = fmt.Sprint(all[i+1])
	}
	switch message {
	case "Started", "Stopped":
		s.timeline.line(markStep, "%s: %s %s (%s)", values["controlPlane"], values["component"], map[string]string{"Started": "runs", "Stopped": "ended"}[message], values["took"])
	case "Kyverno installed", "Kyverno serves":
		s.timeline.line(markStep, "%s (%s)", message, values["took"])
	case "Machine created", "Machine removed":
		s.timeline.line(markStep, "%s: %s", message, values["node"])
	case "Drain failed, the machine is deleted all the same":
		s.timeline.line(markStep, "the drain failed, the machine is deleted all the same")
	case "Process ended on its own":
		s.timeline.line(markStep, "process ended on its own: %s", values["pod"])
	}
}
