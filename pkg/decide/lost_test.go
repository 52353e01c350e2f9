// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

var originalUnknown = expectation{state: decide.OriginalUnknown}

func TestRecordLostWithAnnotation(t *testing.T) {
	in := shoot(phase.WakingUp)
	halfOpen := hook.Values{Policy: fail, Timeout: 3}
	released := expectation{state: decide.Returning, action: decide.ReleaseIt}
	check(t, []decision{
		{"an open hook takes its original from the annotation and is held", in, subject(opened, opens, annotated(own), notReady), heldOpen},
		{"and is restored from it", in, subject(opened, opens, annotated(own), readyFor(stabilization)), restoresIt},
		{"awake, too", shoot(phase.Awake), subject(opened, opens, annotated(own), readyFor(stabilization)), restoresIt},
		{"asleep to be, too", shoot(phase.GoingDown), subject(opened, opens, annotated(own), notReady), heldOpen},
		{"in Report, too", shoot(phase.WakingUp, reportMode), subject(opened, opens, annotated(own), readyFor(stabilization)), restoresIt},
		{"whoever owns the fields", in, subject(opened, owned("velero", policy, timeout), annotated(own), readyFor(stabilization)), restoresIt},
		{"without managedFields, too", in, subject(opened, annotated(own), readyFor(stabilization)), restoresIt},
		{"with an open timeout that was configured otherwise then", in,
			subject(hook.Values{Policy: ignore, Timeout: 5}, opens, annotated(own), readyFor(stabilization)), restoresIt},
		{"a slow Ignore hook, of which only the timeout is open", in,
			subject(opened, owned(guard, timeout), annotated(hook.Values{Policy: ignore, Timeout: 30}), readyFor(stabilization)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: ignore, Timeout: 30}, true}},
		{"a hook whose policy its owner restored gets its timeout from the annotation", in,
			subject(halfOpen, owned(guard, timeout), owned("helm", policy), annotated(own), readyFor(stabilization)), restoresIt},
		{"a foreign timeout longer than the annotated one stays, the policy is restored", in,
			subject(hook.Values{Policy: ignore, Timeout: 20}, owned(guard, policy), owned("helm", timeout), annotated(own), readyFor(stabilization)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: fail, Timeout: 20}, true}},
		{"a closed hook with other values is its owner's, the annotation goes", in,
			subject(hook.Values{Policy: fail, Timeout: 7}, owned("helm", policy, timeout), annotated(own), ready), released},
		{"a closed hook at the annotated values is restored, the annotation goes", in, subject(own, annotated(own), ready), released},
		{"an annotation of the values of an open hook takes nothing over", in, subject(opened, annotated(opened), ready), released},
		{"an annotation that says that the values are the hook's own is believed", in, subject(opened, opens, annotated(opened), ready), released},
	})

	g := NewWithT(t)
	d := decide.Decide(in, subject(opened, owned("velero", policy, timeout), annotated(own), notReady))
	g.Expect(d.Record.Original).To(Equal(own.Original()))
	g.Expect(d.Record.Why).To(ContainSubstring("annotation"))
	g.Expect(d.Record.Reopened).To(Equal(1))
	s := subject(opened, owned("velero", policy, timeout), readyFor(stabilization))
	s.Record = d.Record
	d = decide.Decide(shoot(phase.WakingUp, at(time.Second)), s)
	g.Expect(d.Action).To(Equal(decide.RestoreIt), "nor does the foreign owner count in the pass after that, without the annotation")
	g.Expect(d.To).To(Equal(own))
}

func TestRecordAndAnnotationLost(t *testing.T) {
	in := shoot(phase.WakingUp)
	check(t, []decision{
		{"a hook that we opened is reported, never guessed", in, subject(opened, opens, ready), originalUnknown},
		{"also when its owner took only the timeout", in, subject(hook.Values{Policy: ignore, Timeout: 10}, owned(guard, policy), ready), originalUnknown},
		{"also when its owner took only the policy", in, subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), ready), originalUnknown},
		{"also awake", shoot(phase.Awake), subject(opened, opens), originalUnknown},
		{"also in the call of a hibernation", shoot(phase.GoingDown, call), subject(opened, opens), originalUnknown},
		{"also out of scope and in Report", shoot(phase.WakingUp, reportMode), subject(opened, opens, ready, outOfScope), originalUnknown},
		{"an Ignore that is not ours is its owner's", in, subject(opened, owned("helm", policy, timeout), ready), leftAlone},
		{"a hook that we restored is released", in, subject(own, opens, ready), expectation{state: decide.Returning, action: decide.ReleaseIt}},
		{"a slow Ignore hook that we restored is released", in, subject(hook.Values{Policy: ignore, Timeout: 30}, owned(guard, timeout), ready),
			expectation{state: decide.Returning, action: decide.ReleaseIt}},
		{"a hook whose owner restored it is nothing of ours", in, subject(own, owned("helm", policy, timeout), ready), leftAlone},
	})
	g := NewWithT(t)
	d := decide.Decide(in, subject(opened, opens, ready))
	g.Expect(d.Reason).To(Equal(v1alpha1.ReasonOriginalUnknown))
	g.Expect(d.Message).To(ContainSubstring("by hand"))
}

func TestDamagedRecord(t *testing.T) {
	in := shoot(phase.WakingUp)
	stuck := originalUnknown.recordedToo()
	bad := func(p string, t int32) func(*decide.Subject) { return onRecord(original(apiPolicy(p), t)) }
	set := func(p apiPolicy, t int32, change ...func(*decide.Subject)) decide.Subject {
		return subject(hook.Values{Policy: p, Timeout: t}, append(change, readyFor(stabilization))...)
	}
	check(t, []decision{
		{"a policy that is none is reported", in, set(ignore, 3, opens, bad("Sometimes", 10)), stuck},
		{"an empty policy is reported", in, set(ignore, 3, opens, bad("", 10)), stuck},
		{"a timeout of 0 is reported", in, set(ignore, 3, opens, bad("Fail", 0)), stuck},
		{"a timeout of 1 is not", in, set(ignore, 1, owned(guard, policy), bad("Fail", 1)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: fail, Timeout: 1}, true}},
		{"a timeout of 30 is not", in, set(ignore, 3, opens, bad("Fail", 30)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: fail, Timeout: 30}, true}},
		{"a timeout of 31 is reported", in, set(ignore, 3, opens, bad("Fail", 31)), stuck},
		{"nothing is opened from it either", shoot(phase.GoingDown, call), set(ignore, 10, owned(guard, policy), bad("Sometimes", 10)), stuck},
		{"by force nothing is restored from it", shoot(phase.Awake, pastDeadline, byForce), set(ignore, 3, opens, bad("Sometimes", 10), notReady), stuck},
		{"the annotation mends the policy", in, set(ignore, 3, opens, annotated(hook.Values{Policy: fail, Timeout: 20}), bad("Sometimes", 10)), restoresIt},
		{"the annotation mends the timeout", in, set(ignore, 3, opens, annotated(hook.Values{Policy: ignore, Timeout: 20}), bad("Fail", 31)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: fail, Timeout: 20}, true}},
		{"a person who sets the policy mends it", in, set(fail, 3, owned(guard, timeout), owned("kubectl-edit", policy), bad("Sometimes", 10)), restoresIt},
		{"a policy that is Fail is not ours, also without any owner", in, set(fail, 3, bad("Sometimes", 10)), restoresIt},
		{"a person who sets both mends both", in, set(fail, 7, owned("kubectl-edit", policy, timeout), bad("Sometimes", 31)), watched},
		{"a person who wants Ignore takes the field", in, set(ignore, 10, owned("kubectl-edit", policy, timeout), bad("Sometimes", 10)), watched},
		{"a policy alone does not mend the timeout", in, set(fail, 3, owned(guard, timeout), owned("kubectl-edit", policy), bad("Sometimes", 31)), stuck},
		{"a timeout alone does not mend the policy", in, set(ignore, 7, owned(guard, policy), owned("kubectl-edit", timeout), bad("Sometimes", 31)), stuck},
		{"an Ignore without any owner may be ours", in, set(ignore, 3, bad("Sometimes", 10)), stuck},
		{"a policy that we share with another manager is ours", in, set(ignore, 3, opens, owned("helm", policy), bad("Sometimes", 10)), stuck},
		{"a timeout that we share with another manager is ours", in, set(fail, 3, opens, owned("helm", timeout), bad("Fail", 31)), stuck},
		{"a timeout without any owner may be ours", in, set(fail, 3, bad("Fail", 31)), stuck},
	})
	g := NewWithT(t)
	d := decide.Decide(in, set(ignore, 3, opens, bad("Sometimes", 10)))
	g.Expect(d.Reason).To(Equal(v1alpha1.ReasonOriginalUnknown))
	g.Expect(d.Message).To(ContainSubstring(`"Sometimes"`))
	g.Expect(d.Record.Original.FailurePolicy).To(BeEquivalentTo("Sometimes"), "it is kept as it is")
}

// TestCrashBetweenRecordAndOpen: the record is written, the patch never arrived.
func TestCrashBetweenRecordAndOpen(t *testing.T) {
	rec := onRecord(neverOpened)
	check(t, []decision{
		{"the next call opens it", shoot(phase.GoingDown, call), subject(own, rec), opensIt},
		{"the loop leaves it while its backend is ready", shoot(phase.GoingDown), subject(own, rec, ready), reverted},
		{"the loop opens it when its backend goes", shoot(phase.GoingDown), subject(own, rec, notReady), opensIt},
		{"the second chance at wake-up opens it", shoot(phase.WakingUp, call), subject(own, rec, unknown), opensIt},
		{"when hibernation was cancelled it counts as given back", shoot(phase.WakingUp), subject(own, rec, ready), watched},
		{"what its owner changed meanwhile is the original then", shoot(phase.GoingDown, call),
			subject(hook.Values{Policy: fail, Timeout: 20}, owned("helm", policy, timeout), rec), opensIt},
		{"a hook that its owner deleted meanwhile is gone", shoot(phase.GoingDown, call),
			subject(own, rec, func(s *decide.Subject) { s.Hook = nil }), expectation{state: decide.Gone, recorded: true}},
	})
	g := NewWithT(t)
	d := decide.Decide(shoot(phase.GoingDown, call), subject(hook.Values{Policy: fail, Timeout: 20}, owned("helm", policy, timeout), rec))
	g.Expect(d.Record.Original.TimeoutSeconds).To(BeEquivalentTo(20), "recorded before it is opened")
	d = decide.Decide(shoot(phase.GoingDown), subject(opened, opens, onRecord(func(r *v1alpha1.HookRecord) {
		r.Opened = &metav1.Time{Time: now.Add(-time.Hour)}
	}), ready))
	g.Expect(d.Record.Opened.Time).To(Equal(now.Add(-time.Hour)), "the first open counts")
}

func TestForgedTracesOnGardenersOwnAreNotTrusted(t *testing.T) {
	for _, where := range []phase.Phase{phase.GoingDown, phase.WakingUp, phase.Awake} {
		g := NewWithT(t)
		s := subject(opened, opens, annotated(own), readyFor(stabilization))
		s.Scope = scope.Verdict{Reason: scope.GardenerManaged}
		d := decide.Decide(shoot(where), s)
		g.Expect(d.Action).To(Equal(decide.None))
		g.Expect(d.State).To(Equal(decide.Left))
		g.Expect(d.Record).To(BeNil())
	}
}
