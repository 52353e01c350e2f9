// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

// opensOf are that many opens, the last one at now.
func opensOf(times int) func(*decide.Subject) {
	return func(s *decide.Subject) {
		for i := range times {
			s.Opens = s.Opens.Opened(now.Add(time.Duration(i-times+1) * time.Second))
		}
	}
}

func TestBackOff(t *testing.T) {
	for opened, wait := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 15, 6: 15, 20: 15} {
		for _, p := range []phase.Phase{phase.GoingDown, phase.WakingUp} {
			t.Run(fmt.Sprintf("after %d opens the next one is %d s later, %s", opened, wait, p), func(t *testing.T) {
				g := NewWithT(t)
				s := subject(own, onRecord(), notReady, opensOf(opened))
				early := decide.Decide(shoot(p, at(wait*time.Second-1)), s)
				g.Expect(early.State).To(Equal(decide.Reverted))
				g.Expect(early.Action).To(Equal(decide.None))
				g.Expect(early.NextCheck).To(BeEquivalentTo(1))
				g.Expect(early.Record).NotTo(BeNil())
				g.Expect(decide.Decide(shoot(p, at(wait*time.Second)), s).Action).To(Equal(decide.OpenIt))
				g.Expect(decide.Decide(shoot(p, at(0)), s).NextCheck).To(Equal(wait * time.Second))
			})
		}
	}
}

func TestBackOffEnds(t *testing.T) {
	in := shoot(phase.WakingUp)
	remembered := func(state backend.State, members ...string) func(*decide.Subject) {
		return func(s *decide.Subject) {
			s.Memory = decide.Memory{State: state, Members: members, Seen: now.Add(-time.Second)}
		}
	}
	fought := func(change ...func(*decide.Subject)) decide.Subject {
		return subject(own, append([]func(*decide.Subject){onRecord(), opensOf(5)}, change...)...)
	}
	check(t, []decision{
		{"a backend that turns not ready ends it", in, fought(remembered(backend.Ready), notReady), opensIt},
		{"one that was not ready does not", in, fought(remembered(backend.NotReady), notReady), reverted},
		{"one of which nothing was known does not", in, fought(notReady), reverted},
		{"a pod or process that vanished ends it", in,
			fought(remembered(backend.NotReady, "a/1", "b/1"), verdict(backend.NotReady, "b/1")), opensIt},
		{"the last one that vanished ends it", in,
			fought(remembered(backend.NotReady, "a/1"), func(s *decide.Subject) { notReady(s); s.Verdict.Members = []string{} }), opensIt},
		{"a restarted container ends it", in, fought(remembered(backend.NotReady, "a/1"), verdict(backend.NotReady, "a/2")), opensIt},
		{"a new pod does not", in, fought(remembered(backend.NotReady, "a/1"), verdict(backend.NotReady, "a/1", "b/1")), reverted},
		{"members that could not be read have not vanished", in, fought(remembered(backend.NotReady, "a/1"), notReady), reverted},
		{"the lifecycle call does not wait", shoot(phase.WakingUp, call), fought(notReady), opensIt},
		{"a new hook of a configuration that was just opened waits, too, and is not recorded for that", in,
			subject(own, notReady, opensOf(1)), leftAlone},
	})
	g := NewWithT(t)
	g.Expect(decide.Decide(in, fought(remembered(backend.Ready), notReady)).BackendWent).To(BeTrue())
	g.Expect(decide.Decide(in, fought(notReady)).BackendWent).To(BeFalse())
	g.Expect(decide.Decide(in, fought(remembered(backend.Ready, "a/1"), unknown)).BackendWent).To(BeFalse())
	g.Expect(decide.Decide(in, fought(remembered(backend.Ready, "a/1"), verdict(backend.Unknown, "b/1"))).BackendWent).To(BeFalse())
	g.Expect(decide.Decide(in, fought(remembered(backend.Ready, "a/1"), unknown)).Memory.Members).To(Equal([]string{"a/1"}))
	g.Expect(decide.Decide(in, fought(remembered(backend.Ready, "a/1"), notReady)).Memory.Members).To(Equal([]string{"a/1"}),
		"what could not be read is still known from before")
	g.Expect(decide.Decide(in, fought(verdict(backend.Ready, "b/1"))).Memory).To(Equal(
		decide.Memory{State: backend.Ready, Members: []string{"b/1"}, Seen: now, ReadySince: now}))
	g.Expect(decide.Decide(in, subject(own, notReady, opensOf(1))).NextCheck).To(Equal(time.Second))
}

func TestRevertedByOwner(t *testing.T) {
	in := shoot(phase.WakingUp)
	byFlux := owned("flux", policy, timeout)
	for _, c := range []struct {
		name string
		in   decide.Shoot
		s    decide.Subject
		says string // empty: not told
	}{
		{"five opens within ten minutes are not told", in, subject(own, byFlux, onRecord(), notReady, opensOf(5)), ""},
		{"six are, with the manager's name, while the next one waits", in, subject(own, byFlux, onRecord(), notReady, opensOf(6)), "flux"},
		{"and when it is opened", shoot(phase.WakingUp, at(time.Minute)), subject(own, byFlux, onRecord(), notReady, opensOf(6)), "flux"},
		{"and while it stands open", in, openHook(notReady, opensOf(6)), "helm"},
		{"not when the backend is ready", in, openHook(ready, opensOf(6)), ""},
		{"not when it stands open and the backend is ready", shoot(phase.GoingDown), openHook(ready, opensOf(6)), ""},
		{"a moment before ten minutes they still count", shoot(phase.WakingUp, at(10*time.Minute-5*time.Second-1)),
			subject(own, byFlux, onRecord(), notReady, opensOf(6)), "flux"},
		{"after ten minutes the first does not count any more", shoot(phase.WakingUp, at(10*time.Minute-5*time.Second)),
			subject(own, byFlux, onRecord(), notReady, opensOf(6)), ""},
		{"the manager of the policy is named, not that of the timeout", in,
			subject(own, owned("flux", policy), owned("apply", timeout), onRecord(), notReady, opensOf(6)), "flux"},
		{"without managedFields the manager is not known", in,
			subject(own, onRecord(func(r *recordType) { r.FormerOwners = nil }), notReady, opensOf(6)), "an unknown manager"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide.Decide(c.in, c.s)
			if c.says == "" {
				g.Expect(d.Reason).NotTo(Equal(v1alpha1.ReasonRevertedByOwner))
				return
			}
			g.Expect(d.Reason).To(Equal(v1alpha1.ReasonRevertedByOwner))
			g.Expect(d.Message).To(HavePrefix(c.says + " puts its own values back"))
			g.Expect(d.Message).To(ContainSubstring("opened 6 times"))
		})
	}
}

func TestOpened(t *testing.T) {
	g := NewWithT(t)
	o := decide.Opens{Refused: "spec is bad", RefusedAt: "7"}
	o = o.Opened(now)
	g.Expect(o.Refused).To(BeEmpty())
	for i := range 100 {
		o = o.Opened(now.Add(time.Duration(i) * time.Minute))
	}
	g.Expect(o.Times).To(HaveLen(10), "only the last ten minutes are kept")
	g.Expect(o.Streak).To(Equal(101))
}
