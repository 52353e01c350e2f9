// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

var failed = expectation{state: decide.RestoreFailed, recorded: true}

func TestRestoredByItsOwner(t *testing.T) {
	in := shoot(phase.WakingUp)
	check(t, []decision{
		{"a hook at its original with a ready backend is not written", in, subject(own, owned("helm", policy, timeout), onRecord(), ready), watched},
		{"only an annotation of ours is removed from it", in, subject(own, annotated(own), onRecord(), ready), releasesIt},
		{"it is done when the watch is over", in, subject(own, onRecord(returned(stabilization)), ready), done},
		{"a moment before, it is watched", in, subject(own, onRecord(returned(stabilization-1)), ready), watched},
		{"with no stabilization time it is done at once", shoot(phase.WakingUp, func(in *decide.Shoot) { in.Settings.Stabilization = 0 }),
			subject(own, onRecord(), ready), done},
		{"an unknown verdict does not say that its owner is back", in, subject(own, onRecord(), unknown), reverted},
		{"nor does it past the deadline", shoot(phase.Awake, pastDeadline), subject(own, onRecord(), unknown), reverted},
		{"no verdict does not say it either", in, subject(own, onRecord()), reverted},
		{"a hook whose own values are those of an open one waits for its backend, too", in, subject(opened, onRecord(original(ignore, 3)), notReady), reverted},
	})
	g := NewWithT(t)
	d := decide.Decide(in, subject(own, onRecord(), ready))
	g.Expect(d.Record.Returned.Time).To(Equal(now))
	g.Expect(d.Record.ReturnedBy).To(Equal(v1alpha1.ReturnedByOwner))
	d = decide.Decide(in, subject(own, onRecord(returned(stabilization-time.Second)), ready))
	g.Expect(d.NextCheck).To(Equal(time.Second))
	g.Expect(d.Record.ReturnedBy).To(Equal(v1alpha1.ReturnedByGuard), "who gave it back is not judged twice")
}

func TestThreeReopens(t *testing.T) {
	in := shoot(phase.WakingUp)
	check(t, []decision{
		{"a backend that goes within the watch opens the hook again", in, subject(own, onRecord(returned(stabilization-1)), notReady), opensIt},
		{"past the watch it does not", in, subject(own, onRecord(returned(stabilization)), notReady), done},
		{"it does so a third time", in, subject(own, onRecord(returned(0), reopened(2)), notReady), opensIt},
		{"but not a fourth time", in, subject(own, onRecord(returned(0), reopened(3)), notReady), watched},
		{"then it is left at its original, and told", in, subject(own, onRecord(returned(stabilization), reopened(3)), notReady), failed},
		{"an unknown verdict does not take that back", in, subject(own, onRecord(returned(stabilization), reopened(3)), unknown), failed},
		{"a backend that is no Service any more ends it", in, subject(own, onRecord(returned(stabilization), reopened(3)), urlBackend), done},
		{"until the backend is ready", in, subject(own, onRecord(returned(stabilization), reopened(3)), ready), done},
		{"a hook that is reverted while it is held open after the third time is still held", in, subject(own, onRecord(reopened(3)), notReady), opensIt},
		{"unknown within the watch opens nothing", in, subject(own, onRecord(returned(0)), unknown), watched},
		{"awake nothing is opened again", shoot(phase.Awake, pastDeadline), subject(own, onRecord(returned(0)), notReady), watched},
		{"an opt-out keeps it closed", in, subject(own, onRecord(returned(0)), notReady, outOfScope), watched},
	})
	g := NewWithT(t)
	d := decide.Decide(in, subject(own, onRecord(returned(0), reopened(2)), notReady))
	g.Expect(d.Record.Reopened).To(Equal(3))
	g.Expect(d.Record.Returned).To(BeNil())
	s := subject(own, notReady)
	s.Record = d.Record
	g.Expect(decide.Decide(in, s).Record.Reopened).To(Equal(3), "asking again before the open was written counts nothing")
}

// TestFoundOpenAgain is about managers that write the whole list from what they read while the hook was open.
func TestFoundOpenAgain(t *testing.T) {
	in := shoot(phase.WakingUp)
	byOther := owned("kubectl-edit", policy, timeout)
	check(t, []decision{
		{"an old open value within the watch is given back again", in,
			subject(opened, byOther, onRecord(returned(0)), readyFor(stabilization)), restoresIt},
		{"but is held while the backend is not ready", in, subject(opened, byOther, onRecord(returned(0)), notReady), heldOpen},
		{"and while that is not known", in, subject(opened, byOther, onRecord(returned(0)), unknown), heldOpen},
		{"the third time it is given back, too", in, subject(opened, byOther, onRecord(returned(0), reopened(2)), readyFor(stabilization)), restoresIt},
		{"then it is left, and told", in, subject(opened, byOther, onRecord(returned(0), reopened(3)), readyFor(stabilization)), failed},
		{"for as long as it stands so", in, subject(opened, byOther, onRecord(returned(time.Hour), reopened(3)), readyFor(stabilization)), failed},
		{"it stays ours to give back while the backend is awaited", in, subject(opened, byOther, onRecord(reopened(1)), readyFor(stabilization)), restoresIt},
		{"also when the Shoot goes down after all", shoot(phase.GoingDown), subject(opened, byOther, onRecord(returned(0)), ready), heldOpen},
		{"past the watch an open value is its manager's own will", in,
			subject(opened, byOther, onRecord(returned(stabilization)), readyFor(stabilization)), done},
		{"another value within the watch is its manager's own will", in,
			subject(hook.Values{Policy: fail, Timeout: 5}, byOther, onRecord(returned(0)), ready), watched},
	})
	g := NewWithT(t)
	d := decide.Decide(in, subject(opened, byOther, onRecord(returned(0)), notReady))
	g.Expect(d.Record.Reopened).To(Equal(1))
	g.Expect(d.Record.Original).To(Equal(own.Original()))
	s := subject(opened, byOther, notReady)
	s.Record = d.Record
	d = decide.Decide(in, s)
	g.Expect(d.Record.Reopened).To(Equal(1), "asking again counts nothing")
	g.Expect(d.Record.Original).To(Equal(own.Original()))

	d = decide.Decide(shoot(phase.GoingDown), subject(opened, byOther, onRecord(returned(0)), ready))
	g.Expect(d.Record.Reopened).To(Equal(1), "going down it must not be taken for its manager's own will either")

	d = decide.Decide(in, subject(opened, byOther, onRecord(returned(stabilization)), ready))
	g.Expect(d.Record.Original).To(Equal(opened.Original()))
}

func TestSharedConfiguration(t *testing.T) {
	other := func(fields ...string) func(*decide.Subject) {
		return func(s *decide.Subject) {
			s.Configuration.Hooks = append(s.Configuration.Hooks, hook.Hook{Name: "b.example.com", Index: 1})
			s.Configuration.ManagedFields = append(s.Configuration.ManagedFields,
				managedFields(guard, metav1.ManagedFieldsOperationUpdate, map[string][]string{"b.example.com": fields}))
			data, _ := json.Marshal(v1alpha1.Originals{Hooks: map[string]v1alpha1.Original{"b.example.com": own.Original()}})
			s.Configuration.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: string(data)}
		}
	}
	in, rec := shoot(phase.WakingUp), onRecord(returned(stabilization))
	check(t, []decision{
		{"what is left of another hook that is open does not keep this one from being done", in, subject(own, rec, ready, other(policy)), done},
		{"this one's original in the annotation does", in, subject(own, rec, ready, other(policy), annotated(own)), releasesIt},
		{"what is left of this one does", in, subject(own, rec, ready, other(policy), owned(guard, timeout)), releasesIt},
		{"an entry of ours without any hook is left of all of them", in, subject(own, rec, ready, other()), releasesIt},
		{"so is one without an annotation", in, subject(own, rec, ready, owned(guard)), releasesIt},
		{"an annotation without any hook of ours is, too", in, subject(own, rec, ready, func(s *decide.Subject) {
			s.Configuration.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: ""}
		}), releasesIt},
		{"of a hook whose owner replaced it, also by one that was never opened", in, subject(own, ready, func(s *decide.Subject) {
			s.Configuration.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: ""}
		}), expectation{state: decide.Returning, action: decide.ReleaseIt}},
		{"but one that was never opened is no matter of another that is open", in, subject(own, ready, other(policy)), leftAlone},
	})
}

func TestGone(t *testing.T) {
	in := shoot(phase.WakingUp)
	gone := func(change ...func(*decide.Subject)) decide.Subject {
		s := subject(opened, onRecord())
		s.Hook, s.Configuration.Hooks = nil, nil
		s.Memory = decide.Memory{State: backend.Ready, Seen: now.Add(-time.Second)}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	since := func(readyAgo, goneAgo time.Duration) func(*decide.Subject) {
		return func(s *decide.Subject) {
			ready(s)
			s.Memory.ReadySince, s.Memory.GoneSince = now.Add(-readyAgo), now.Add(-goneAgo)
		}
	}
	const limit = 2 * time.Minute
	kept, forgotten := expectation{state: decide.Gone, recorded: true}, expectation{state: decide.Gone}
	check(t, []decision{
		{"it is kept while nothing is known of its backend", in, gone(), kept},
		{"it is kept while its backend is not ready", in, gone(since(time.Hour, time.Hour), notReady), kept},
		{"an unknown verdict does not count", in, gone(since(time.Hour, time.Hour), unknown), kept},
		{"it is kept for a moment less than two minutes with a ready backend", in, gone(since(limit-1, time.Hour)), kept},
		{"it is forgotten after two minutes", in, gone(since(limit, time.Hour)), forgotten},
		{"a backend that was ready before counts from when the hook vanished: a moment less", in, gone(since(time.Hour, limit-1)), kept},
		{"a backend that was ready before counts from when the hook vanished", in, gone(since(time.Hour, limit)), forgotten},
		{"it is forgotten with its uid, whatever the backend", in, gone(notReady, func(s *decide.Subject) { s.ConfigurationExists = false }), forgotten},
		{"a re-created configuration with another uid is a new hook", in, subject(own, func(s *decide.Subject) { s.Configuration.UID = "uid-2" }, notReady), opensIt},
		{"one that was re-created open, with our annotation, is held", in,
			subject(opened, owned("velero", policy, timeout), annotated(own), notReady), heldOpen},
		{"it is given back although somebody else owns its fields", in,
			subject(opened, owned("velero", policy, timeout), annotated(own), readyFor(stabilization)), restoresIt},
		{"a vanished hook that its owner fills in again is restored by its owner", in,
			subject(own, owned("kyverno", policy, timeout), onRecord(func(r *v1alpha1.HookRecord) { r.Gone = true }), ready), watched},
		{"one that is filled in before its backend is ready is held open", in,
			subject(own, owned("kyverno", policy, timeout), onRecord(func(r *v1alpha1.HookRecord) { r.Gone = true }), notReady), opensIt},
	})
	g := NewWithT(t)
	d := decide.Decide(in, gone(ready))
	g.Expect(d.Record.Gone).To(BeTrue())
	g.Expect(d.Memory.GoneSince).To(Equal(now))
	g.Expect(d.NextCheck).To(Equal(10 * time.Second))
	d = decide.Decide(in, gone(since(limit-time.Second, time.Hour)))
	g.Expect(d.NextCheck).To(Equal(time.Second))
	s := subject(own, ready, onRecord(func(r *v1alpha1.HookRecord) { r.Gone = true }))
	s.Memory.GoneSince = now
	d = decide.Decide(in, s)
	g.Expect(d.Record.Gone).To(BeFalse())
	g.Expect(d.Memory.GoneSince).To(BeZero())
}
