// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
)

// Memory of a hook between two passes. Losing it costs time, never correctness.
type Memory struct {
	// ReadySince is when the backend became ready; zero while it is not.
	ReadySince time.Time
	// GoneSince is when the hook vanished; zero while it exists.
	GoneSince time.Time
	// Seen is the time of the last verdict that was not Unknown, State its state, and Members the last ones that could be read.
	Seen    time.Time
	State   backend.State
	Members []string
}

// remember keeps since when the backend is ready, and what it looked like.
func remember(now time.Time, s Subject) Memory {
	m := s.Memory
	if s.Hook != nil {
		m.GoneSince = time.Time{}
	} else if m.GoneSince.IsZero() {
		m.GoneSince = now
	}
	if s.Verdict == nil {
		return m
	}
	if s.Verdict.State != backend.Ready || now.Sub(m.Seen) > longestGap {
		m.ReadySince = time.Time{} // an unknown verdict is a break, too: Ready must have been seen all the time
	}
	if s.Verdict.State == backend.Unknown {
		return m
	}
	if s.Verdict.State == backend.Ready && m.ReadySince.IsZero() {
		m.ReadySince = now
	}
	m.Seen, m.State = now, s.Verdict.State
	if s.Verdict.Members != nil {
		m.Members = s.Verdict.Members
	}
	return m
}

// went says whether the backend turned NotReady, or one of its pods or processes ended.
func went(s Subject) bool {
	if s.Verdict == nil || s.Verdict.State == backend.Unknown {
		return false
	}
	if s.Verdict.State == backend.NotReady && s.Memory.State == backend.Ready {
		return true
	}
	return s.Verdict.Members != nil &&
		slices.ContainsFunc(s.Memory.Members, func(m string) bool { return !slices.Contains(s.Verdict.Members, m) })
}

// Opens of a configuration.
type Opens struct {
	// Times of the opens in the last ten minutes, oldest first.
	Times []time.Time
	// Streak counts the opens since the backend last went.
	Streak int
	// Refused is the API server's message when it refused our patch twice for the configuration's own invalidity, at the
	// resourceVersion RefusedAt.
	Refused, RefusedAt string
}

// Opened returns o after an open at now.
func (o Opens) Opened(now time.Time) Opens {
	times := make([]time.Time, 0, len(o.Times)+1)
	for _, t := range o.Times {
		if now.Sub(t) < fightWindow {
			times = append(times, t)
		}
	}
	return Opens{Times: append(times, now), Streak: o.Streak + 1}
}

// wait is how long the next open has to wait at now: 1, 2, 4 … 15 s after the last one; nothing for the first of a streak.
func (o Opens) wait(now time.Time) time.Duration {
	if o.Streak == 0 || len(o.Times) == 0 {
		return 0
	}
	backoff := maxBackoff
	if o.Streak <= 4 {
		backoff = time.Second << (o.Streak - 1)
	}
	return max(0, backoff-now.Sub(o.Times[len(o.Times)-1]))
}

// Fought says whether the configuration was opened so often that its owner is to be named.
func (o Opens) Fought(now time.Time) bool { return o.recent(now) > fightLimit }

// recent counts the opens in the last ten minutes.
func (o Opens) recent(now time.Time) int {
	n := 0
	for _, t := range o.Times {
		if now.Sub(t) < fightWindow {
			n++
		}
	}
	return n
}
