// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

var now = time.Date(2026, 8, 24, 12, 0, 0, 0, time.UTC)

// onNodes is a hook that Gardener flags while it is Fail.
func onNodes(name string, policy admissionregistrationv1.FailurePolicyType, timeout int32) hook.Hook {
	return hook.Hook{
		Name: name, Values: hook.Values{Policy: policy, Timeout: timeout}, Service: &hook.Service{Namespace: "hooks", Name: "hook", Port: 443},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
		}},
	}
}

func flagged(name string) hook.Hook { return onNodes(name, "Fail", 10) }
func harmless() hook.Hook           { return onNodes("harmless", "Ignore", 10) }

// configuration has hooks that the guard opens, as long as nothing else is said.
func configuration(name string, hooks ...hook.Hook) gate.Subject {
	s := gate.Subject{Configuration: hook.Configuration{
		Kind: hook.Validating, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Hooks: hooks, Labels: map[string]string{},
	}}
	for range hooks {
		s.Hooks = append(s.Hooks, gate.Hook{Scope: scope.Verdict{InScope: true, Reason: scope.InScope}})
	}
	return s
}

func left(s gate.Subject, i int) gate.Subject {
	s.Hooks[i].Scope = scope.Verdict{Reason: scope.UserLeave, Message: "webhooks[0] of the GuardConfig says Leave."}
	return s
}

// labelled has the label, set by a field manager.
func labelled(s gate.Subject, manager string) gate.Subject {
	s.Configuration.Labels[v1alpha1.ClaimLabel] = v1alpha1.ClaimValue
	s.Configuration.ManagedFields = append(s.Configuration.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + v1alpha1.ClaimLabel + `":{}}}}`),
	})
	return s
}

func keyOf(s gate.Subject) string {
	return v1alpha1.ClaimKey("ValidatingWebhookConfiguration", "", s.Configuration.Name, s.Configuration.UID)
}

// claims has one claim on the configuration.
func claims(s gate.Subject, change ...func(*v1alpha1.Claim)) map[string]v1alpha1.Claim {
	c := v1alpha1.Claim{Kind: string(s.Configuration.Kind), Name: s.Configuration.Name, UID: s.Configuration.UID, Since: metav1.NewTime(now.Add(-time.Hour))}
	for _, f := range change {
		f(&c)
	}
	return map[string]v1alpha1.Claim{keyOf(s): c}
}

func pending(c *v1alpha1.Claim)             { c.Pending = true }
func removed(n int) func(c *v1alpha1.Claim) { return func(c *v1alpha1.Claim) { c.Removed = n } }

func reasons(findings []v1alpha1.Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, f.Reason)
	}
	return out
}

func TestDecideOnAConfiguration(t *testing.T) {
	const ours, theirs = v1alpha1.ClaimFieldManager, "helm"
	leave := gate.Settings{Left: &v1alpha1.Finding{Reason: v1alpha1.FindingConstraintLeft, Message: "no"}}
	plain := func() gate.Subject { return configuration("a", flagged("x"), harmless()) }
	foreign := func() gate.Subject {
		s := plain()
		s.Configuration.Labels[v1alpha1.ClaimLabel] = "flux"
		return s
	}
	opened := func() gate.Subject {
		s := configuration("a", onNodes("x", "Ignore", 3))
		s.Hooks[0].Original = &hook.Values{Policy: "Fail", Timeout: 10}
		return s
	}
	for _, tc := range []struct {
		name     string
		subject  gate.Subject
		claims   map[string]v1alpha1.Claim
		settings gate.Settings
		action   string // set, unset or none
		record   string // none, pending or claimed
		state    v1alpha1.GateState
		blocking []string
	}{
		{"a flagged one whose hooks are all opened is claimed", plain(), nil, gate.Settings{}, "set", "pending", "Closed", []string{"ClaimFailed"}},
		{"one that is not flagged is left alone", configuration("a", harmless()), nil, gate.Settings{}, "none", "none", "Open", nil},
		{"one with a flagged hook that is not opened is not claimed", left(configuration("a", flagged("x"), flagged("y")), 1), nil, gate.Settings{},
			"none", "none", "Closed", []string{"NotGuarded"}},
		{"one with an unflagged hook that is not opened is claimed", left(plain(), 1), nil, gate.Settings{}, "set", "pending", "Closed", []string{"ClaimFailed"}},
		{"one that is claimed stays so", labelled(plain(), ours), claims(plain()), gate.Settings{}, "none", "claimed", "Lifted", nil},
		{"one that is claimed stays so while its hooks are open", labelled(opened(), ours), claims(plain()), gate.Settings{}, "none", "claimed", "Lifted", nil},
		{"one that stands open is claimed for the time after", opened(), nil, gate.Settings{}, "set", "pending", "Open", []string{"ClaimFailed"}},
		{"a crash before the label was set is made up for", plain(), claims(plain(), pending), gate.Settings{}, "set", "pending", "Closed", []string{"ClaimFailed"}},
		{"a crash after the label was set is made up for", labelled(plain(), ours), claims(plain(), pending), gate.Settings{}, "none", "claimed", "Lifted", nil},
		{"a label somebody else set meanwhile is his", labelled(plain(), theirs), claims(plain(), pending), gate.Settings{}, "none", "none", "Open", nil},
		{"a label somebody else took over is his", labelled(labelled(plain(), ours), theirs), claims(plain()), gate.Settings{}, "none", "none", "Open", nil},
		{"a user's label is not claimed", labelled(plain(), theirs), nil, gate.Settings{}, "none", "none", "Open", nil},
		{"a user's label is not removed", labelled(plain(), theirs), nil, leave, "none", "none", "Open", nil},
		{"a user's label that hides what nobody opens is told", left(labelled(plain(), theirs), 0), nil, gate.Settings{}, "none", "none", "Open", []string{"HiddenNotGuarded"}},
		{"a label with another value is not overwritten", foreign(), nil, gate.Settings{}, "none", "none", "Closed", []string{"ClaimFailed"}},
		{"a label taken off is set again", plain(), claims(plain()), gate.Settings{}, "set", "pending", "Closed", []string{"ClaimFailed"}},
		{"a label taken off twice is not set again", plain(), claims(plain(), removed(1)), gate.Settings{}, "none", "claimed", "Closed", []string{"ClaimRemoved"}},
		{"nor later", plain(), claims(plain(), removed(2)), gate.Settings{}, "none", "claimed", "Closed", []string{"ClaimRemoved"}},
		{"one that is set then is not ours", labelled(plain(), ours), claims(plain(), removed(2)), gate.Settings{}, "none", "none", "Open", nil},
		{"what is left is given up", labelled(plain(), ours), claims(plain()), leave, "unset", "claimed", "Lifted", nil},
		{"what is given up is forgotten", plain(), claims(plain()), leave, "none", "none", "Closed", []string{"ConstraintLeft"}},
		{"one that is no longer flagged is given up", labelled(configuration("a", harmless()), ours), claims(plain()), gate.Settings{}, "unset", "claimed", "Lifted", nil},
		{"one with a hook that is no longer opened is given up", left(labelled(plain(), ours), 0), claims(plain()), gate.Settings{},
			"unset", "claimed", "Lifted", []string{"HiddenNotGuarded"}},
		{"nothing is done while it is frozen", plain(), nil, gate.Settings{Frozen: "why"}, "none", "none", "Closed", []string{"ClaimFailed"}},
		{"nothing is given up while it is frozen", left(labelled(plain(), ours), 0), claims(plain()), gate.Settings{Frozen: "why"},
			"none", "claimed", "Lifted", []string{"HiddenNotGuarded"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			r := gate.Decide(gate.Input{Now: now, Subjects: []gate.Subject{tc.subject}, Claims: tc.claims, Settings: tc.settings})
			action := "none"
			if len(r.Actions) > 0 {
				g.Expect(r.Actions).To(HaveLen(1))
				action = map[bool]string{true: "set", false: "unset"}[r.Actions[0].Set]
				g.Expect(r.Actions[0].Configuration.Name).To(Equal("a"))
			}
			g.Expect(action).To(Equal(tc.action))
			record := "none"
			if c, known := r.Claims[keyOf(tc.subject)]; known {
				record = map[bool]string{true: "pending", false: "claimed"}[c.Pending]
			}
			g.Expect(record).To(Equal(tc.record))
			g.Expect(r.Status.State).To(Equal(tc.state))
			g.Expect(reasons(r.Status.Blocking)).To(ConsistOf(tc.blocking))
			for _, f := range r.Status.Blocking {
				g.Expect(len(f.Message)).To(BeNumerically("<=", 300), f.Message)
			}
		})
	}
}

func TestDecideMore(t *testing.T) {
	t.Run("a claim on a configuration that is created anew is forgotten, and the new one is claimed", func(t *testing.T) {
		g := NewWithT(t)
		old, fresh := configuration("a", flagged("x")), configuration("a", flagged("x"))
		fresh.Configuration.UID = "another"
		r := gate.Decide(gate.Input{Now: now, Subjects: []gate.Subject{fresh}, Claims: claims(old)})
		g.Expect(r.Claims).To(HaveLen(1))
		g.Expect(r.Claims).To(HaveKeyWithValue(keyOf(fresh), v1alpha1.Claim{
			Kind: "ValidatingWebhookConfiguration", Name: "a", UID: "another", Since: metav1.NewTime(now), Pending: true}))
	})
	t.Run("what Gardener has taken over is not written to", func(t *testing.T) {
		g := NewWithT(t)
		s := labelled(configuration("a", flagged("x")), v1alpha1.ClaimFieldManager)
		s.Hooks[0].Scope = scope.Verdict{Reason: scope.GardenerManaged}
		r := gate.Decide(gate.Input{Now: now, Subjects: []gate.Subject{s}, Claims: claims(s)})
		g.Expect(r.Actions).To(BeEmpty())
		g.Expect(r.Claims).To(BeEmpty())
	})
	t.Run("a failed patch is told with the API server's words and not tried again in the pass", func(t *testing.T) {
		g := NewWithT(t)
		s := configuration("a", flagged("x"))
		r := gate.Decide(gate.Input{Now: now, Subjects: []gate.Subject{s}, Claims: claims(s, pending), Failures: map[string]string{keyOf(s): "not you"}})
		g.Expect(r.Actions).To(BeEmpty())
		g.Expect(r.Claims).To(HaveLen(1))
		g.Expect(r.Status.Blocking).To(ConsistOf(And(HaveField("Reason", "ClaimFailed"), HaveField("Message", ContainSubstring("not you")))))
	})
	t.Run("the remediator's warning closes the gate, and a label hides it", func(t *testing.T) {
		g := NewWithT(t)
		s := configuration("a", harmless())
		s.Configuration.Annotations = map[string]string{"gardener.cloud/warning": "changed"}
		r := gate.Decide(gate.Input{Subjects: []gate.Subject{s}})
		g.Expect(r.Actions).To(BeEmpty())
		g.Expect(r.Status.State).To(Equal(v1alpha1.GateClosed))
		g.Expect(reasons(r.Status.Blocking)).To(ConsistOf("Remediated"))
		r = gate.Decide(gate.Input{Subjects: []gate.Subject{labelled(s, "helm")}})
		g.Expect(r.Status.State).To(Equal(v1alpha1.GateOpen))
	})
	t.Run("what Gardener's check leaves out for the app label is no matter", func(t *testing.T) {
		g := NewWithT(t)
		s := configuration("a", flagged("x"))
		s.Configuration.Labels["app"] = "gardener-resource-manager"
		s.Hooks[0].Scope = scope.Verdict{Reason: scope.GardenerManaged}
		g.Expect(gate.Decide(gate.Input{Subjects: []gate.Subject{s}}).Status.State).To(Equal(v1alpha1.GateOpen))
	})
	t.Run("a closed gate says why, and the list is bounded", func(t *testing.T) {
		g := NewWithT(t)
		var all []gate.Subject
		for i := range 50 {
			all = append(all, left(configuration(string(rune('A'+i)), flagged("x")), 0))
		}
		r := gate.Decide(gate.Input{Subjects: all})
		g.Expect(r.Status.Blocking).To(HaveLen(v1alpha1.MaxFindings))
		g.Expect(r.Status.Message).To(ContainSubstring("50 webhook configurations"))
	})
	t.Run("the input is not changed", func(t *testing.T) {
		s := configuration("a", flagged("x"))
		given := claims(s, removed(1))
		gate.Decide(gate.Input{Now: now, Subjects: []gate.Subject{s}, Claims: given})
		NewWithT(t).Expect(given).To(Equal(claims(s, removed(1))))
	})
}

func TestUnopened(t *testing.T) {
	g := NewWithT(t)
	s := left(labelled(configuration("a", flagged("x"), flagged("y")), v1alpha1.ClaimFieldManager), 1)
	g.Expect(gate.Unopened([]gate.Subject{s}, claims(s))).To(ConsistOf(And(
		HaveField("Name", "a"), HaveField("Hook", "y"), HaveField("Message", ContainSubstring("Leave")))))
	g.Expect(gate.Unopened([]gate.Subject{s}, nil)).To(BeEmpty(), "the label is somebody else's")
}

func TestPatchOfAConfiguration(t *testing.T) {
	g := NewWithT(t)
	c := configuration("a", flagged("x")).Configuration
	set, err := gate.Patch(gate.Action{Set: true, Configuration: &c}, v1alpha1.Claim{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.Type).To(Equal(types.MergePatchType))
	g.Expect(set.Data).To(MatchJSON(`{"metadata":{"uid":"uid-a","resourceVersion":"7","labels":{"resources.gardener.cloud/managed-by":"gardener"}}}`))
	unset, err := gate.Patch(gate.Action{Configuration: &c}, v1alpha1.Claim{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unset.Data).To(MatchJSON(`{"metadata":{"uid":"uid-a","resourceVersion":"7","labels":{"resources.gardener.cloud/managed-by":null}}}`))
}
