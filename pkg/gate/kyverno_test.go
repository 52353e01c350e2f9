// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
)

const helmLabels = `{"team":"a","resources.gardener.cloud/managed-by":"gardener"}`

func ofKyverno(s gate.Subject) gate.Subject {
	s.Configuration.Labels[gate.KyvernoLabel] = gate.KyvernoName
	return s
}

// theKyverno are three configurations, of which one is flagged.
func theKyverno() []gate.Subject {
	return []gate.Subject{
		ofKyverno(configuration("policy", harmless())), ofKyverno(configuration("resource", flagged("x"))), ofKyverno(configuration("verify")),
	}
}

func allLabelled(all []gate.Subject) []gate.Subject {
	for i := range all {
		all[i] = labelled(all[i], "kyverno")
	}
	return all
}

func kyvernoClaim(change ...func(*v1alpha1.Claim)) map[string]v1alpha1.Claim {
	c := v1alpha1.Claim{Kind: "ConfigMap", Namespace: "hooks", Name: "kyverno", UID: "cm"}
	for _, f := range change {
		f(&c)
	}
	return map[string]v1alpha1.Claim{kyvernoKey: c}
}

var kyvernoKey = v1alpha1.ClaimKey("ConfigMap", "hooks", "kyverno", "cm")

func withLabels(labels *string, managers ...string) *gate.ConfigMap {
	return &gate.ConfigMap{Namespace: "hooks", Found: true, UID: "cm", ResourceVersion: "5", Labels: labels, Managers: managers}
}

func appliedBy(cm *gate.ConfigMap, manager string) *gate.ConfigMap {
	cm.Appliers = []string{manager}
	cm.Managers = append(cm.Managers, manager)
	return cm
}

func TestDecideOnKyverno(t *testing.T) {
	const ours = v1alpha1.ClaimFieldManager
	lift := gate.Settings{KyvernoLabels: true}
	leave := gate.Settings{KyvernoLabels: true, Left: &v1alpha1.Finding{Reason: v1alpha1.FindingConstraintLeft, Message: "no"}}
	blocked := func() []gate.Subject {
		all := theKyverno()
		all[1] = left(all[1], 0)
		return all
	}
	for _, tc := range []struct {
		name      string
		subjects  []gate.Subject
		claims    map[string]v1alpha1.Claim
		settings  gate.Settings
		configMap *gate.ConfigMap
		slow      bool
		read      string
		action    string
		record    string
		blocking  []string
	}{
		{"the ConfigMap is read before anything is decided", theKyverno(), nil, lift, nil, false, "hooks", "none", "none", []string{"KyvernoWebhookLabels"}},
		{"its ConfigMap is claimed", theKyverno(), nil, lift, withLabels(nil), false, "", "set", "pending", []string{"KyvernoWebhookLabels"}},
		{"and not read as long as all is well", allLabelled(theKyverno()), kyvernoClaim(), lift, nil, false, "", "none", "claimed", nil},
		{"it is no matter while nothing is flagged", []gate.Subject{ofKyverno(configuration("policy", harmless()))}, nil, lift, nil, false, "", "none", "none", nil},
		{"labels from the user's Helm value are his", allLabelled(theKyverno()), nil, lift, nil, false, "", "none", "none", nil},
		{"labels from the user's Helm value are never removed", allLabelled(theKyverno()), nil, leave, nil, false, "", "none", "none", nil},
		{"one hook that is not opened keeps all of it unclaimed", blocked(), nil, lift, nil, false, "", "none", "none", []string{"NotGuarded"}},
		{"one hook that is no longer opened gives all of it up", allLabelled(blocked()), kyvernoClaim(), lift, withLabels(ptr.To(helmLabels), ours), false,
			"", "unset", "claimed", []string{"HiddenNotGuarded"}},
		{"what is left is given up", allLabelled(theKyverno()), kyvernoClaim(), leave, withLabels(ptr.To(helmLabels), ours), false, "", "unset", "claimed", nil},
		{"what the user applies himself is not removed", allLabelled(theKyverno()), kyvernoClaim(), leave, appliedBy(withLabels(ptr.To(helmLabels), ours), "argocd"), false,
			"", "none", "none", nil},
		{"what is left is given up although somebody edited another label", allLabelled(theKyverno()), kyvernoClaim(), leave,
			withLabels(ptr.To(helmLabels), "kubectl-edit"), false, "", "unset", "claimed", nil},
		{"a key somebody else set meanwhile is his", allLabelled(theKyverno()), kyvernoClaim(pending), lift, withLabels(ptr.To(helmLabels), "helm"), false,
			"", "none", "none", nil},
		{"what is given up is forgotten", theKyverno(), kyvernoClaim(), leave, withLabels(nil), false, "", "none", "none", []string{"ConstraintLeft"}},
		{"so is what vanished with its ConfigMap", theKyverno(), kyvernoClaim(), leave, &gate.ConfigMap{Namespace: "hooks"}, false, "", "none", "none", []string{"ConstraintLeft"}},
		{"no ConfigMap is told", theKyverno(), nil, lift, &gate.ConfigMap{Namespace: "hooks"}, false, "", "none", "none", []string{"KyvernoWebhookLabels"}},
		{"an unreadable one too, and what is on record stays", theKyverno(), kyvernoClaim(), lift, &gate.ConfigMap{Namespace: "hooks", Err: "forbidden"}, false,
			"", "none", "claimed", []string{"KyvernoWebhookLabels"}},
		{"bad JSON is not touched", theKyverno(), nil, lift, withLabels(ptr.To(`{"a":`)), false, "", "none", "none", []string{"KyvernoWebhookLabels"}},
		{"nor are values that are no strings", theKyverno(), nil, lift, withLabels(ptr.To(`{"a":1}`)), false, "", "none", "none", []string{"KyvernoWebhookLabels"}},
		{"the key taken out is set again", theKyverno(), kyvernoClaim(), lift, withLabels(ptr.To(`{"team":"a"}`)), false, "", "set", "pending", []string{"KyvernoWebhookLabels"}},
		{"the key taken out twice is not", theKyverno(), kyvernoClaim(removed(1)), lift, withLabels(ptr.To(`{"team":"a"}`)), false, "", "none", "claimed", []string{"ClaimRemoved"}},
		{"another value of the key is not overwritten", theKyverno(), nil, lift, withLabels(ptr.To(`{"resources.gardener.cloud/managed-by":"flux"}`)), false,
			"", "none", "none", []string{"ClaimFailed"}},
		{"Kyverno that has not labelled yet is waited for", theKyverno(), kyvernoClaim(), lift, withLabels(ptr.To(helmLabels), ours), false, "", "none", "claimed",
			[]string{"KyvernoWebhookLabels"}},
		{"a ConfigMap of Gardener's is left alone", theKyverno(), nil, lift, &gate.ConfigMap{Namespace: "hooks", Found: true, UID: "cm", GardenerManaged: true}, false,
			"", "none", "none", []string{"KyvernoWebhookLabels"}},
		{"the switch in the GuardConfig is obeyed", theKyverno(), nil, gate.Settings{}, nil, false, "", "none", "none", []string{"KyvernoWebhookLabels"}},
		{"a crash after the key was set is made up for", allLabelled(theKyverno()), kyvernoClaim(pending), lift, withLabels(ptr.To(helmLabels), ours), false, "", "none", "claimed", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			r := gate.Decide(gate.Input{
				Now: now, Subjects: tc.subjects, Claims: tc.claims, Settings: tc.settings, ConfigMap: tc.configMap, KyvernoSlow: tc.slow,
			})
			g.Expect(r.ReadConfigMap).To(Equal(tc.read))
			action := "none"
			if len(r.Actions) > 0 {
				g.Expect(r.Actions).To(ConsistOf(HaveField("ConfigMap", tc.configMap)))
				action = map[bool]string{true: "set", false: "unset"}[r.Actions[0].Set]
			}
			g.Expect(action).To(Equal(tc.action))
			record := "none"
			if c, known := r.Claims[kyvernoKey]; known {
				record = map[bool]string{true: "pending", false: "claimed"}[c.Pending]
			}
			g.Expect(record).To(Equal(tc.record))
			g.Expect(reasons(r.Status.Blocking)).To(ConsistOf(tc.blocking))
			for _, f := range r.Status.Blocking {
				g.Expect(len(f.Message)).To(BeNumerically("<=", 300), f.Message)
			}
		})
	}
}

func TestKyvernoCountsItsConfigurations(t *testing.T) {
	g := NewWithT(t)
	r := gate.Decide(gate.Input{Subjects: allLabelled(theKyverno()), Claims: kyvernoClaim(), Settings: gate.Settings{KyvernoLabels: true}})
	g.Expect(r.Status.State).To(Equal(v1alpha1.GateLifted))
	g.Expect(r.Status.Claimed).To(Equal(int32(3)))
}

func TestOldKyvernoIsTold(t *testing.T) {
	g := NewWithT(t)
	in := gate.Input{Subjects: theKyverno(), Claims: kyvernoClaim(), Settings: gate.Settings{KyvernoLabels: true}, ConfigMap: withLabels(ptr.To(helmLabels))}
	r := gate.Decide(in)
	g.Expect(r.KyvernoWaits).To(BeTrue())
	g.Expect(r.Status.Blocking[0].Message).NotTo(ContainSubstring("1.12"))
	in.KyvernoSlow = true
	g.Expect(gate.Decide(in).Status.Blocking[0].Message).To(ContainSubstring("1.12"))
}

func TestForgedKyvernoLabelOnGardenersOwnChangesNothing(t *testing.T) {
	g := NewWithT(t)
	forged := ofKyverno(configuration("gardener", flagged("x")))
	forged.Hooks[0].Scope.InScope, forged.Hooks[0].Scope.Reason = false, "GardenerManaged"
	r := gate.Decide(gate.Input{Subjects: append(allLabelled(theKyverno()), forged), Claims: kyvernoClaim(), Settings: gate.Settings{KyvernoLabels: true}})
	g.Expect(r.Actions).To(BeEmpty())
	g.Expect(r.Claims).To(HaveKey(kyvernoKey))
}

func TestPatchOfTheConfigMap(t *testing.T) {
	for name, tc := range map[string]struct {
		before *string
		set    bool
		added  bool
		after  string
	}{
		"the key is added":                                  {nil, true, true, `"{\"resources.gardener.cloud/managed-by\":\"gardener\"}"`},
		"an empty value is filled":                          {ptr.To(""), true, false, `"{\"resources.gardener.cloud/managed-by\":\"gardener\"}"`},
		"null is filled":                                    {ptr.To("null"), true, false, `"{\"resources.gardener.cloud/managed-by\":\"gardener\"}"`},
		"the labels of others stay when ours is set":        {ptr.To(`{"team":"<a>"}`), true, false, `"{\"resources.gardener.cloud/managed-by\":\"gardener\",\"team\":\"\\u003ca\\u003e\"}"`},
		"the labels of others stay when ours goes":          {ptr.To(helmLabels), false, true, `"{\"team\":\"a\"}"`},
		"the key goes with the last label if it was added":  {ptr.To(`{"resources.gardener.cloud/managed-by":"gardener"}`), false, true, `null`},
		"the key stays empty if it was there":               {ptr.To(`{"resources.gardener.cloud/managed-by":"gardener"}`), false, false, `"{}"`},
		"what is not there goes without a change of others": {ptr.To(`{"team":"a"}`), false, false, `"{\"team\":\"a\"}"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			patch, err := gate.Patch(gate.Action{Set: tc.set, ConfigMap: withLabels(tc.before)}, v1alpha1.Claim{KeyAdded: tc.added})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(patch.Data).To(MatchJSON(`{"metadata":{"uid":"cm","resourceVersion":"5"},"data":{"webhookLabels":` + tc.after + `}}`))
		})
	}
	t.Run("bad JSON is an error", func(t *testing.T) {
		_, err := gate.Patch(gate.Action{Set: true, ConfigMap: withLabels(ptr.To("{"))}, v1alpha1.Claim{})
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
}
