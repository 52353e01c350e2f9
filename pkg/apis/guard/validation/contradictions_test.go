// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/validation"
)

func TestFindContradictions(t *testing.T) {
	const guarded, left = v1alpha1.ActionGuard, v1alpha1.ActionLeave
	rules := func(rules ...v1alpha1.WebhookRule) *v1alpha1.GuardConfig {
		return &v1alpha1.GuardConfig{Webhooks: rules}
	}
	times := func(stabilization, deadline time.Duration) *v1alpha1.GuardConfig {
		config := wakingUp(deadline)
		config.Stabilization = duration(stabilization)
		return config
	}
	defaults := &v1alpha1.GuardConfig{}
	v1alpha1.SetObjectDefaults_GuardConfig(defaults)
	for name, tc := range map[string]struct {
		config *v1alpha1.GuardConfig
		want   gomegatypes.GomegaMatcher
	}{
		"the defaults do not contradict themselves": {defaults, BeEmpty()},
		"nothing does not contradict itself":        {&v1alpha1.GuardConfig{}, BeEmpty()},
		"two rules that match the same say opposites": {
			rules(v1alpha1.WebhookRule{Hook: "a", Action: guarded}, v1alpha1.WebhookRule{Hook: "a", Action: left}),
			refused(field.ErrorTypeInvalid, ".webhooks[1]", "webhooks[0] says Guard")},
		"a rule stands behind one that covers it": {
			rules(v1alpha1.WebhookRule{Namespace: "a", Action: left}, v1alpha1.WebhookRule{Namespace: "b", Action: left}, v1alpha1.WebhookRule{Namespace: "b", Hook: "c", Configuration: "d", Action: left}),
			refused(field.ErrorTypeInvalid, ".webhooks[2]", "webhooks[1] matches all")},
		"an exception stands before its rule": {
			rules(v1alpha1.WebhookRule{Namespace: "a", Hook: "b", Action: left}, v1alpha1.WebhookRule{Namespace: "a", Action: guarded}), BeEmpty()},
		"rules that overlap without covering": {
			rules(v1alpha1.WebhookRule{Namespace: "a", Action: left}, v1alpha1.WebhookRule{Hook: "b", Action: guarded}), BeEmpty()},
		"a rule without conditions covers nothing":           {rules(v1alpha1.WebhookRule{Action: left}, v1alpha1.WebhookRule{Hook: "b", Action: guarded}), BeEmpty()},
		"stabilization takes as long as the wake-up may":     {times(time.Minute, time.Minute), refused(field.ErrorTypeInvalid, ".stabilization", "less than wakingUp.deadline (1m0s)")},
		"stabilization takes less time than the wake-up may": {times(59*time.Second, time.Minute), BeEmpty()},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(validation.FindContradictions(tc.config, field.NewPath("spec", "providerConfig"))).To(tc.want)
		})
	}
}
