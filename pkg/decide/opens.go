// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"
)

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
