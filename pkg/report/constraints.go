// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// Constraints returns what the status of the Shoot in the garden is to say, without times: whether webhooks are enforced and,
// once that was judged, whether the Shoot is prepared for hibernation.
func Constraints(s *v1alpha1.GuardStatus) []gardencorev1beta1.Condition {
	enforced := gardencorev1beta1.Condition{
		Type: v1alpha1.ConstraintWebhooksEnforced, Status: gardencorev1beta1.ConditionTrue,
		Reason: v1alpha1.ReasonEnforced, Message: "No webhook is fail-open because of hibernation.",
	}
	if s.Open > 0 {
		enforced.Status, enforced.Reason, enforced.Message = gardencorev1beta1.ConditionFalse, v1alpha1.ReasonFailOpen, short(s.Message)
	}
	if s.Gate == nil {
		return []gardencorev1beta1.Condition{enforced}
	}
	return []gardencorev1beta1.Condition{enforced, prepared(s.Gate)}
}

func prepared(gate *v1alpha1.GateStatus) gardencorev1beta1.Condition {
	c := gardencorev1beta1.Condition{
		Type: v1alpha1.ConstraintHibernationPrepared, Status: gardencorev1beta1.ConditionFalse, Reason: v1alpha1.ReasonGateClosed,
	}
	switch {
	case gate.State == v1alpha1.GateClosed:
		c.Message = "Webhooks keep Gardener from hibernating the Shoot: "
	case gate.Unguarded > 0:
		c.Reason, c.Message = v1alpha1.FindingHidden, "Webhooks that nobody sets fail-open are hidden from Gardener's check; the Shoot may not wake up: "
	case gate.State == v1alpha1.GateLifted:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionTrue, v1alpha1.ReasonGateLifted, "Every webhook that could keep the Shoot from sleeping or waking up is set fail-open in time."
		return c
	default:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionTrue, v1alpha1.ReasonGateOpen, "No webhook keeps Gardener from hibernating the Shoot."
		return c
	}
	for i, f := range gate.Blocking {
		if i > 0 {
			c.Message += "; "
		}
		if f.Hook != "" {
			c.Message += f.Name + "/" + f.Hook + ": "
		} else if f.Name != "" {
			c.Message += f.Name + ": "
		}
		c.Message += f.Message
	}
	c.Message = short(c.Message)
	return c
}
