// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	gomegatypes "github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/validation"
)

func refused(kind field.ErrorType, path, remedy string) gomegatypes.GomegaMatcher {
	return ConsistOf(PointTo(MatchFields(IgnoreExtras, Fields{
		"Type": Equal(kind), "Field": Equal("spec.providerConfig" + path), "Detail": ContainSubstring(remedy),
	})))
}

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func rule(action v1alpha1.RuleAction, configuration string) *v1alpha1.GuardConfig {
	return &v1alpha1.GuardConfig{Webhooks: []v1alpha1.WebhookRule{{Hook: "fine.example.com", Action: v1alpha1.ActionLeave}, {Configuration: configuration, Action: action}}}
}

func timeouts(mutating, validating int32) *v1alpha1.GuardConfig {
	return &v1alpha1.GuardConfig{OpenTimeouts: &v1alpha1.OpenTimeouts{Mutating: &mutating, Validating: &validating}}
}

func stabilization(d time.Duration) *v1alpha1.GuardConfig {
	return &v1alpha1.GuardConfig{Stabilization: duration(d)}
}

func wakingUp(d time.Duration) *v1alpha1.GuardConfig {
	return &v1alpha1.GuardConfig{WakingUp: &v1alpha1.WakingUp{Deadline: duration(d)}}
}

func goingDown(d time.Duration) *v1alpha1.GuardConfig {
	return &v1alpha1.GuardConfig{GoingDown: &v1alpha1.GoingDown{Deadline: duration(d)}}
}

func TestValidateGuardConfig(t *testing.T) {
	defaults := &v1alpha1.GuardConfig{}
	v1alpha1.SetObjectDefaults_GuardConfig(defaults)
	for name, tc := range map[string]struct {
		config *v1alpha1.GuardConfig
		want   gomegatypes.GomegaMatcher
	}{
		"the defaults are valid":        {defaults, BeEmpty()},
		"nothing at all is valid":       {&v1alpha1.GuardConfig{}, BeEmpty()},
		"empty parts are valid":         {&v1alpha1.GuardConfig{OpenTimeouts: &v1alpha1.OpenTimeouts{}, WakingUp: &v1alpha1.WakingUp{}, GoingDown: &v1alpha1.GoingDown{}}, BeEmpty()},
		"report mode is valid":          {&v1alpha1.GuardConfig{Mode: new(v1alpha1.ModeReport)}, BeEmpty()},
		"another mode is not supported": {&v1alpha1.GuardConfig{Mode: new(v1alpha1.Mode("Off"))}, refused(field.ErrorTypeNotSupported, ".mode", `"Guard", "Report"`)},

		"a rule for a namespace is valid":           {&v1alpha1.GuardConfig{Webhooks: []v1alpha1.WebhookRule{{Namespace: "a", Action: v1alpha1.ActionGuard}}}, BeEmpty()},
		"a rule for a configuration is valid":       {rule(v1alpha1.ActionGuard, "a"), BeEmpty()},
		"a rule that matches everything is refused": {rule(v1alpha1.ActionGuard, ""), refused(field.ErrorTypeRequired, ".webhooks[1]", "at least one of configuration, hook and namespace")},
		"a rule without action is refused":          {rule("", "a"), refused(field.ErrorTypeRequired, ".webhooks[1].action", `"Guard" or "Leave"`)},
		"a rule with another action is refused":     {rule("Open", "a"), refused(field.ErrorTypeNotSupported, ".webhooks[1].action", `"Guard", "Leave"`)},

		"timeouts of 1 s and 30 s are valid":       {timeouts(1, 30), BeEmpty()},
		"timeouts of 30 s and 1 s are valid":       {timeouts(30, 1), BeEmpty()},
		"a mutating timeout of 0 s is refused":     {timeouts(0, 3), refused(field.ErrorTypeInvalid, ".openTimeouts.mutating", "from 1 to 30")},
		"a mutating timeout of 31 s is refused":    {timeouts(31, 3), refused(field.ErrorTypeInvalid, ".openTimeouts.mutating", "from 1 to 30")},
		"a validating timeout of 0 s is refused":   {timeouts(1, 0), refused(field.ErrorTypeInvalid, ".openTimeouts.validating", "from 1 to 30")},
		"a validating timeout of 31 s is refused":  {timeouts(1, 31), refused(field.ErrorTypeInvalid, ".openTimeouts.validating", "from 1 to 30")},
		"no stabilization is valid":                {stabilization(0), BeEmpty()},
		"ten minutes of stabilization are valid":   {stabilization(10 * time.Minute), BeEmpty()},
		"a negative stabilization is refused":      {stabilization(-1), refused(field.ErrorTypeInvalid, ".stabilization", "at least 0s and at most 10m")},
		"more than ten minutes are refused":        {stabilization(10*time.Minute + 1), refused(field.ErrorTypeInvalid, ".stabilization", "at least 0s and at most 10m")},
		"a waking-up deadline of 1m is valid":      {wakingUp(time.Minute), BeEmpty()},
		"a shorter waking-up deadline is refused":  {wakingUp(time.Minute - 1), refused(field.ErrorTypeInvalid, ".wakingUp.deadline", "at least 1m")},
		"a going-down deadline of 10m is valid":    {goingDown(10 * time.Minute), BeEmpty()},
		"a shorter going-down deadline is refused": {goingDown(10*time.Minute - 1), refused(field.ErrorTypeInvalid, ".goingDown.deadline", "at least 10m")},
		"restoring after the deadline is valid":    {&v1alpha1.GuardConfig{WakingUp: &v1alpha1.WakingUp{AfterDeadline: new(v1alpha1.AfterDeadlineRestore)}}, BeEmpty()},
		"something else after it is not supported": {&v1alpha1.GuardConfig{WakingUp: &v1alpha1.WakingUp{AfterDeadline: new(v1alpha1.AfterDeadline("Delete"))}}, refused(field.ErrorTypeNotSupported, ".wakingUp.afterDeadline", `"KeepOpen", "Restore"`)},
		"leaving the constraint is valid":          {&v1alpha1.GuardConfig{HibernationConstraint: new(v1alpha1.ConstraintLeave)}, BeEmpty()},
		"another handling is not supported":        {&v1alpha1.GuardConfig{HibernationConstraint: new(v1alpha1.ConstraintHandling("Off"))}, refused(field.ErrorTypeNotSupported, ".hibernationConstraint", `"Lift", "Leave"`)},
		"an empty mode is not the same as no mode": {&v1alpha1.GuardConfig{Mode: new(v1alpha1.Mode(""))}, refused(field.ErrorTypeNotSupported, ".mode", "")},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(validation.ValidateGuardConfig(tc.config, field.NewPath("spec", "providerConfig"))).To(tc.want)
		})
	}
	t.Run("all faults are told at once", func(t *testing.T) {
		config := timeouts(0, 31)
		config.Mode = new(v1alpha1.Mode("Off"))
		NewWithT(t).Expect(validation.ValidateGuardConfig(config, nil)).To(HaveLen(3))
	})
}
