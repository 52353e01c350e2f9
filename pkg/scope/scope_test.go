// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

func rule(groups ...string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule:       admissionregistrationv1.Rule{APIGroups: groups, APIVersions: []string{"v9"}, Resources: []string{"things/part"}},
	}
}

func hookWith(rules ...admissionregistrationv1.RuleWithOperations) hook.Hook {
	return hook.Hook{
		Name: "a.example.com", Rules: rules, Values: hook.Values{Policy: admissionregistrationv1.Ignore, Timeout: 1},
		Service: &hook.Service{Namespace: "hooks", Name: "hook", Port: 443},
	}
}

func TestJudgeByGroups(t *testing.T) {
	for _, group := range []string{
		"", "*", "extensions", "apps", "batch", "autoscaling", "policy",
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io",
		"scheduling.k8s.io", "storage.k8s.io",
	} {
		t.Run("a rule that names the group "+group+" reaches", func(t *testing.T) {
			g := NewWithT(t)
			for _, rules := range [][]admissionregistrationv1.RuleWithOperations{
				{rule(group)}, {rule("example.com", group)}, {rule("example.com"), rule(group)},
			} {
				v := scope.Judge(hook.Configuration{}, hookWith(rules...), nil)
				g.Expect(v).To(And(HaveField("InScope", true), HaveField("Reason", scope.InScope), HaveField("Reportable", true)))
			}
		})
	}
	for _, tc := range []struct {
		name  string
		rules []admissionregistrationv1.RuleWithOperations
		want  bool
	}{
		{"a foreign group does not reach", []admissionregistrationv1.RuleWithOperations{rule("example.com")}, false},
		{"several rules with foreign groups do not reach", []admissionregistrationv1.RuleWithOperations{rule("example.com", "kyverno.io"), rule("wgpolicyk8s.io")}, false},
		{"a group that looks like one of Kubernetes' does not reach", []admissionregistrationv1.RuleWithOperations{rule("metrics.k8s.io", "Apps", "apps.example.com")}, false},
		{"a hook without rules is never called", nil, false},
		{"a rule without groups is taken for one that reaches", []admissionregistrationv1.RuleWithOperations{rule()}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			v := scope.Judge(hook.Configuration{}, hookWith(tc.rules...), nil)
			g.Expect(v.InScope).To(Equal(tc.want))
			if !tc.want {
				g.Expect(v).To(And(HaveField("Reason", scope.OutOfReach), HaveField("Reportable", false)))
			}
		})
	}
}

func TestJudgeExclusions(t *testing.T) {
	type mark = map[string]string
	url, none, twice := hookWith(rule("")), hookWith(rule("")), hookWith(rule(""))
	url.Service, url.URL = nil, "https://example.com/"
	none.Service = nil
	twice.Duplicate = true
	foreign := func(h hook.Hook) hook.Hook {
		h.Rules = []admissionregistrationv1.RuleWithOperations{rule("example.com")}
		return h
	}
	reaching := hookWith(rule(""))

	for _, tc := range []struct {
		name                string
		labels, annotations mark
		hook                hook.Hook
		want                scope.Reason
		reportable          bool
	}{
		{"applied by gardener-resource-manager", nil, mark{"resources.gardener.cloud/origin": "seed:ns/mr"}, reaching, scope.GardenerManaged, false},
		{"an origin without a value counts as well", nil, mark{"resources.gardener.cloud/origin": ""}, reaching, scope.GardenerManaged, false},
		{"gardener-resource-manager's own webhooks", mark{"app": "gardener-resource-manager"}, nil, reaching, scope.GardenerManaged, false},
		{"another app", mark{"app": "gardener-resource-manager-x"}, nil, reaching, scope.InScope, true},
		{"no cleanup", mark{"shoot.gardener.cloud/no-cleanup": "true"}, nil, reaching, scope.GardenerManaged, false},
		{"cleanup wanted", mark{"shoot.gardener.cloud/no-cleanup": "false"}, nil, reaching, scope.InScope, true},
		{"the label that lifts Gardener's constraint excludes nothing", mark{"resources.gardener.cloud/managed-by": "gardener"}, nil, reaching, scope.InScope, true},
		{"the origin as a label excludes nothing", mark{"resources.gardener.cloud/origin": "gardener"}, nil, reaching, scope.InScope, true},
		{"our label", mark{v1alpha1.LeaveLabel: "true"}, nil, reaching, scope.LeaveLabel, true},
		{"our label with another value", mark{v1alpha1.LeaveLabel: "false"}, nil, reaching, scope.InScope, true},
		{"our label on what is out of reach", mark{v1alpha1.LeaveLabel: "true"}, nil, foreign(reaching), scope.LeaveLabel, false},
		{"Gardener's mark is named before our label", mark{v1alpha1.LeaveLabel: "true", "app": "gardener-resource-manager"}, nil, reaching, scope.GardenerManaged, false},
		{"a url", nil, nil, url, scope.URLBackend, true},
		{"a url out of reach", nil, nil, foreign(url), scope.URLBackend, false},
		{"no backend", nil, nil, none, scope.NoBackend, true},
		{"a duplicate name", nil, nil, twice, scope.DuplicateName, true},
		{"a duplicate name out of reach", nil, nil, foreign(twice), scope.DuplicateName, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := hook.Configuration{Name: "cfg", Labels: tc.labels, Annotations: tc.annotations}
			v := scope.Judge(c, tc.hook, nil)
			g.Expect(v).To(And(HaveField("Reason", tc.want), HaveField("InScope", tc.want == scope.InScope), HaveField("Reportable", tc.reportable)))
			g.Expect(v.Message).To(MatchRegexp(`^[A-Z].*\.$`))
			if tc.want != scope.InScope {
				forced := scope.Judge(c, tc.hook, []v1alpha1.WebhookRule{{Configuration: "cfg", Action: v1alpha1.ActionGuard}})
				g.Expect(forced).To(Equal(v), "no rule overrides it")
			}
		})
	}
}

func TestJudgeByRules(t *testing.T) {
	const guard, leave = v1alpha1.ActionGuard, v1alpha1.ActionLeave
	type rules = []v1alpha1.WebhookRule
	reaching, foreign := hookWith(rule("")), hookWith(rule("example.com"))

	for _, tc := range []struct {
		name       string
		rules      rules
		hook       hook.Hook
		want       scope.Reason
		reportable bool
	}{
		{"guards what is out of reach, by configuration", rules{{Configuration: "cfg", Action: guard}}, foreign, scope.UserGuard, true},
		{"guards by hook", rules{{Hook: "a.example.com", Action: guard}}, foreign, scope.UserGuard, true},
		{"guards by namespace of the backend", rules{{Namespace: "hooks", Action: guard}}, foreign, scope.UserGuard, true},
		{"all fields that are set must match", rules{{Configuration: "cfg", Hook: "a.example.com", Namespace: "other", Action: guard}}, foreign, scope.OutOfReach, false},
		{"all fields that are set match", rules{{Configuration: "cfg", Hook: "a.example.com", Namespace: "hooks", Action: guard}}, foreign, scope.UserGuard, true},
		{"another configuration", rules{{Configuration: "cf", Action: leave}}, reaching, scope.InScope, true},
		{"another hook", rules{{Hook: "example.com", Action: leave}}, reaching, scope.InScope, true},
		{"leaves what could stand in the way, and that is worth a word", rules{{Configuration: "cfg", Action: leave}}, reaching, scope.UserLeave, true},
		{"leaves what could not", rules{{Configuration: "cfg", Action: leave}}, foreign, scope.UserLeave, false},
		{"the first rule that matches decides", rules{{Hook: "b", Action: guard}, {Namespace: "hooks", Action: leave}, {Configuration: "cfg", Action: guard}}, reaching, scope.UserLeave, true},
		{"a rule that names nothing matches nothing", rules{{Action: leave}}, reaching, scope.InScope, true},
		{"a rule with an unknown action is passed over", rules{{Configuration: "cfg", Action: "Drop"}, {Hook: "a.example.com", Action: leave}}, reaching, scope.UserLeave, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := scope.Judge(hook.Configuration{Name: "cfg"}, tc.hook, tc.rules)
			NewWithT(t).Expect(v).To(And(HaveField("Reason", tc.want), HaveField("Reportable", tc.reportable),
				HaveField("InScope", tc.want == scope.UserGuard || tc.want == scope.InScope)))
		})
	}
}
