// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/report"
)

func TestConstraints(t *testing.T) {
	finding := v1alpha1.Finding{Reason: v1alpha1.FindingNotGuarded, Name: "policies", Hook: "pods", Message: "A rule says Leave."}
	for name, tc := range map[string]struct {
		status           v1alpha1.GuardStatus
		enforced         gardencorev1beta1.ConditionStatus
		prepared         gardencorev1beta1.ConditionStatus // empty: not judged
		preparedReason   string
		preparedContains string
	}{
		"nothing is open and the gate was not judged": {v1alpha1.GuardStatus{}, gardencorev1beta1.ConditionTrue, "", "", ""},
		"hooks are open":                                {v1alpha1.GuardStatus{Open: 1, Message: "asleep"}, gardencorev1beta1.ConditionFalse, "", "", ""},
		"Gardener finds nothing by itself":              {gated(v1alpha1.GateOpen, 0), gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionTrue, v1alpha1.ReasonGateOpen, "No webhook"},
		"Gardener finds nothing thanks to us":           {gated(v1alpha1.GateLifted, 0), gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionTrue, v1alpha1.ReasonGateLifted, "in time"},
		"Gardener finds hooks":                          {gated(v1alpha1.GateClosed, 0, finding), gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionFalse, v1alpha1.ReasonGateClosed, "policies/pods: A rule says Leave."},
		"a user's label hides a hook that nobody opens": {gated(v1alpha1.GateOpen, 1, finding), gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionFalse, v1alpha1.FindingHidden, "policies/pods"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			constraints := report.Constraints(&tc.status)
			g.Expect(constraints[0]).To(And(HaveField("Type", BeEquivalentTo(v1alpha1.ConstraintWebhooksEnforced)), HaveField("Status", tc.enforced)))
			if tc.prepared == "" {
				g.Expect(constraints).To(HaveLen(1), "what was not judged is not told")
				return
			}
			g.Expect(constraints[1]).To(And(HaveField("Type", BeEquivalentTo(v1alpha1.ConstraintHibernationPrepared)),
				HaveField("Status", tc.prepared), HaveField("Reason", tc.preparedReason), HaveField("Message", ContainSubstring(tc.preparedContains))))
		})
	}
	t.Run("messages fit a tooltip", func(t *testing.T) {
		long := finding
		long.Message = strings.Repeat("x", 1000)
		status := gated(v1alpha1.GateClosed, 0, long, long)
		status.Open, status.Message = 1, strings.Repeat("x", 1000)
		for _, c := range report.Constraints(&status) {
			NewWithT(t).Expect(len([]rune(c.Message))).To(BeNumerically("<=", 300))
		}
	})
}

func gated(state v1alpha1.GateState, unguarded int32, blocking ...v1alpha1.Finding) v1alpha1.GuardStatus {
	return v1alpha1.GuardStatus{Gate: &v1alpha1.GateStatus{State: state, Unguarded: unguarded, Blocking: blocking}}
}
