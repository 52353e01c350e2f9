// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps the guard's memory: what a hook's original was, and which cycle runs. It works on values only; the
// caller writes them.
package record

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

const (
	// holdBackAttempts is how many flow attempts are held back when a hook cannot be opened before the sleep (design R9).
	holdBackAttempts = 3
	// holdBackAtLeast and holdBackAtMost bound the time for which they are.
	holdBackAtLeast = 5 * time.Minute
	holdBackAtMost  = 15 * time.Minute
)

// CycleRuns says whether a hibernation or wake-up is unfinished.
func CycleRuns(s *v1alpha1.GuardState) bool {
	return s.Cycle != nil && s.Cycle.Ended == nil
}

// MayOpenNew says whether hooks that are not on record may be opened: only in a running cycle that gardenlet began.
func MayOpenNew(s *v1alpha1.GuardState) bool {
	return CycleRuns(s) && !s.Cycle.HoldOnly
}

// BeginCycle begins a cycle at a lifecycle call of gardenlet, unless one of this direction already runs. Hooks that are
// still on record stay, without what they went through in the cycle before.
//
// A hook that was never given back keeps the verdict of before it was opened: what its backend says now does not tell whether
// it was broken then.
func BeginCycle(s *v1alpha1.GuardState, direction v1alpha1.Direction, now time.Time) {
	if MayOpenNew(s) && s.Cycle.Direction == direction {
		if direction == v1alpha1.DirectionHibernate {
			s.Cycle.FirstReadyNode = nil // noted while the Shoot was to wake up without a flow
		}
		return
	}
	s.Cycle = &v1alpha1.Cycle{Direction: direction, Begun: metav1.NewTime(now)}
	for key, h := range s.Hooks {
		if direction == v1alpha1.DirectionHibernate && h.Returned != nil {
			h.Verdict, h.VerdictReason = "", ""
		}
		if direction == v1alpha1.DirectionHibernate || h.Returned != nil {
			h.Opened = nil // the call opens it once more; a wake-up goes on with what the hibernation opened
		}
		if h.Returned != nil {
			h.Reopened = 0
		} else {
			h.Reopened = min(h.Reopened, 1) // what was found open again stays ours to give back
		}
		h.Returned, h.ReturnedBy = nil, ""
		s.Hooks[key] = h
	}
}

// Slept notes that the Shoot's API server is down: whatever wake-up was on record is over, and its deadline does not count for
// the next one.
func Slept(s *v1alpha1.GuardState) {
	if s.Cycle != nil {
		s.Cycle.FirstReadyNode = nil
	}
}

// HoldOnly begins a cycle in which only what is on record is held, for hooks that were found outside of a flow.
func HoldOnly(s *v1alpha1.GuardState, direction v1alpha1.Direction, now time.Time) {
	s.Cycle = &v1alpha1.Cycle{Direction: direction, Begun: metav1.NewTime(now), HoldOnly: true}
}

// EndCycle ends the running cycle. With hooks still on record the cycle stays as an ended one; otherwise it is removed.
func EndCycle(s *v1alpha1.GuardState, now time.Time) {
	if s.Cycle == nil {
		return
	}
	if len(s.Hooks) == 0 {
		s.Cycle = nil
		return
	}
	if s.Cycle.Ended == nil {
		s.Cycle.Ended = &metav1.Time{Time: now}
	}
}

// DeadlinePassed says whether a deadline that counts from the first ready node has passed.
func DeadlinePassed(s *v1alpha1.GuardState, deadline time.Duration, now time.Time) bool {
	if s.Cycle == nil || s.Cycle.FirstReadyNode == nil {
		return false
	}
	return !now.Before(s.Cycle.FirstReadyNode.Add(deadline))
}

// GoingDownOverdue says whether a hibernation has lasted longer than deadline.
func GoingDownOverdue(s *v1alpha1.GuardState, deadline time.Duration, now time.Time) bool {
	return s.Cycle != nil && s.Cycle.Direction == v1alpha1.DirectionHibernate && !now.Before(s.Cycle.Begun.Add(deadline))
}

// HoldBack says whether a flow attempt (its gardener.cloud/timestamp) is to be held back because a hook could not be opened
// before the sleep: for three attempts, at least 5 and at most 15 minutes long. It notes the attempt in the cycle.
func HoldBack(c *v1alpha1.Cycle, attempt string, now time.Time) bool {
	if c.FirstHeldBack == nil {
		c.FirstHeldBack = &metav1.Time{Time: now}
	}
	held := now.Sub(c.FirstHeldBack.Time)
	enough := len(c.Attempts) >= holdBackAttempts && !slices.Contains(c.Attempts, attempt) && held >= holdBackAtLeast
	if c.LetGo || enough || held >= holdBackAtMost {
		c.LetGo = true
		return false
	}
	if !slices.Contains(c.Attempts, attempt) {
		c.Attempts = append(c.Attempts, attempt)
	}
	return true
}

// NothingHeldBack notes an attempt in which nothing stood in the way: trouble that comes later in the cycle is held back anew.
func NothingHeldBack(c *v1alpha1.Cycle) {
	c.LetGo, c.MayNotWake, c.Attempts, c.FirstHeldBack = false, "", nil, nil
}

// ForgetFuture takes times after now for now. A clock that was ahead wrote them, on this machine before a step or on that of
// another replica: without this a hook would stay open, or a hibernation held back, until the clock is there.
func ForgetFuture(s *v1alpha1.GuardState, now time.Time) {
	present := func(times ...*metav1.Time) {
		for _, t := range times {
			if t != nil && t.After(now) {
				t.Time = now
			}
		}
	}
	if c := s.Cycle; c != nil {
		present(&c.Begun, c.FirstReadyNode, c.FirstHeldBack, c.Ended)
	}
	for _, h := range s.Hooks {
		present(h.Opened, h.Returned)
	}
}

// New is the record of a hook that has not been changed yet.
func New(c hook.Configuration, h hook.Hook) v1alpha1.HookRecord {
	return v1alpha1.HookRecord{
		Kind: string(c.Kind), Configuration: c.Name, UID: c.UID, Hook: h.Name,
		Backend: Backend(h), Original: h.Values.Original(), FormerOwners: c.Owners(h.Name),
	}
}

// Backend is the Service behind h as it goes on record; nil without one.
func Backend(h hook.Hook) *v1alpha1.Backend {
	if h.Service == nil {
		return nil
	}
	return &v1alpha1.Backend{Namespace: h.Service.Namespace, Name: h.Service.Name, Port: h.Service.Port}
}

// Key is the key of r in GuardState.Hooks.
func Key(r v1alpha1.HookRecord) string {
	return v1alpha1.HookKey(r.Kind, r.Configuration, r.UID, r.Hook)
}
