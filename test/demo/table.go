// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const nothing = "–"

// table shows both runs side by side.
func table(r *Result, expected []Hook) string {
	without, with := &r.WithoutGuard, &r.WithGuard
	return columns([][3]string{
		{"", "WITHOUT THE GUARD", "WITH THE GUARD"},
		{"falling asleep", slept(&without.Run), slept(&with.Run)},
		{"  requests refused meanwhile", count(without.Sleep.Blocked), count(with.Sleep.Blocked)},
		{"hooks open when the API server ended", ofAll(&without.Run, expected), ofAll(&with.Run, expected)},
		{"  after Kyverno's last process", nothing, fmt.Sprintf("%.2f s", with.LastProcessToLastIgnore)},
		{"wake-up: API server ready", after(without.Seconds.WakeToAPIServer), after(with.Seconds.WakeToAPIServer)},
		{"  from there to a Ready node", woke(&without.Run), woke(&with.Run)},
		{"  requests refused meanwhile", count(without.Wake.Blocked), count(with.Wake.Blocked)},
		{"  from there to the end of the flow", after(without.Seconds.APIServerToFlowDone), after(with.Seconds.APIServerToFlowDone)},
		{"  from there to the last hook restored", nothing, after(with.Seconds.APIServerToRestored)},
		{"  from there until the guard is done", nothing, after(with.Seconds.APIServerToSettled)},
		{"hooks at their own policy again", nothing, returned(with, expected)},
		{"originals lost", nothing, fmt.Sprint(with.OriginalsLost)},
		{"other fields changed", nothing, fmt.Sprint(with.OtherFieldsChanged)},
		{"leftovers of the guard", nothing, fmt.Sprint(with.Leftovers)},
		{"most writes to one configuration", nothing, fmt.Sprint(with.WritesPerConfiguration.Max)},
		{"a pod that violates a policy", nothing, outcome(with.Policies.ViolatingPodDenied, "denied", "ADMITTED")},
		{"a pod that does not", nothing, outcome(with.Policies.GoodPodAdmitted, "admitted", "REFUSED")},
		{"the whole run", fmt.Sprintf("%.0f s", without.Seconds.Total), fmt.Sprintf("%.0f s", with.Seconds.Total)},
	})
}

func slept(r *Run) string {
	if r.Sleep.Forced {
		return fmt.Sprintf("HANGS, forced after %.0f s", sleepWithin.Seconds())
	}
	return fmt.Sprintf("%.1f s", r.Seconds.Sleep)
}

func woke(r *Run) string {
	if !r.Wake.NodeReady {
		return fmt.Sprintf("DEADLOCK, none in %.0f s", deadlockAfter.Seconds())
	}
	return fmt.Sprintf("%.1f s", r.Seconds.APIServerToNodeReady)
}

func after(seconds float64) string {
	if seconds == 0 {
		return "NEVER"
	}
	return fmt.Sprintf("%.1f s", seconds)
}

func count(blocked []Blocked) string {
	requests := 0
	for _, b := range blocked {
		requests += b.Count
	}
	return fmt.Sprint(requests)
}

func ofAll(r *Run, expected []Hook) string {
	missing, _ := compare(expected, r.OpenWhenAPIStopped)
	return fmt.Sprintf("%d of %d", len(expected)-len(missing), len(expected))
}

func returned(with *WithGuard, expected []Hook) string {
	by := with.Restored
	return fmt.Sprintf("%d of %d (%d by the guard, %d by their owner)", by.ByGuard+by.ByOwner, len(expected), by.ByGuard, by.ByOwner)
}

func outcome(good bool, word, otherwise string) string {
	if good {
		return word
	}
	return otherwise
}

// columns aligns cells and rules off the first row.
func columns(rows [][3]string) string {
	var widths [3]int
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for n, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
		if n == 0 {
			out.WriteString(strings.Repeat("─", widths[0]+widths[1]+widths[2]+6) + "\n")
		}
	}
	return out.String()
}
