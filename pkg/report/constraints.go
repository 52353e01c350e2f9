// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
)

// Constraints returns what the guard says in the status.constraints of the Shoot in the garden: type, status, reason and a message
// of at most 300 characters; no times. True is good. They say the same while the Shoot sleeps as when it was seen last.
func Constraints(in Input) []gardencorev1beta1.Condition {
	in.Hooks = sorted(in.Hooks)
	return []gardencorev1beta1.Condition{enforced(in), prepared(in)}
}

// enforced is True if no hook is open because of the guard, and Unknown if hooks are on record and the Shoot cannot be looked at.
func enforced(in Input) gardencorev1beta1.Condition {
	c := gardencorev1beta1.Condition{Type: v1alpha1.ConstraintWebhooksEnforced}
	open := pick(in.Hooks, func(h Hook) bool { return h.OpenNow })
	status, reason, message := Condition(in)
	switch {
	case status == gardencorev1beta1.ConditionUnknown:
		c.Status = status
	case len(open) > 0 && reason == v1alpha1.ReasonMayNotWake: // it is not about what is open
		c.Status, reason = gardencorev1beta1.ConditionFalse, v1alpha1.ReasonOpening
		message = fmt.Sprintf("%s fail-open because of hibernation: %s", webhooks(len(open)), names(open))
	case len(open) > 0:
		c.Status = gardencorev1beta1.ConditionFalse
	default:
		c.Status, reason, message = gardencorev1beta1.ConditionTrue, v1alpha1.ReasonEnforced, "No webhook is fail-open because of hibernation."
	}
	c.Reason, c.Message = reason, short(message)
	return c
}

// prepared is True if the gate is open and no label hides a hook that nobody opens, and no hook on record refuses to be opened.
func prepared(in Input) gardencorev1beta1.Condition {
	c := gardencorev1beta1.Condition{Type: v1alpha1.ConstraintHibernationPrepared}
	gate := in.Gate
	stuck := pick(in.Hooks, func(h Hook) bool { return h.State == decide.NotOpenable })
	switch {
	case in.Cycle != nil && in.Cycle.LetGo:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionFalse, v1alpha1.ReasonMayNotWake, "The Shoot may not wake up. "+in.Cycle.MayNotWake
	case len(stuck) > 0:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionFalse, v1alpha1.ReasonNotOpenable, "Cannot be opened: "+names(stuck)
	case gate == nil:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionUnknown, v1alpha1.ReasonNotJudged, "The webhooks have not been judged yet."
	case gate.State == v1alpha1.GateClosed || gate.Unguarded > 0:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionFalse, v1alpha1.ReasonGateClosed, gate.Message
		if len(gate.Blocking) > 0 {
			first := gate.Blocking[0]
			c.Reason, c.Message = first.Reason, finding(first)
			if more := len(gate.Blocking) - 1; more > 0 {
				c.Message = fmt.Sprintf("(1 of %d) %s", more+1, c.Message)
			}
		}
	case gate.State == v1alpha1.GateLifted:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionTrue, v1alpha1.ReasonGateLifted, gate.Message
	default:
		c.Status, c.Reason, c.Message = gardencorev1beta1.ConditionTrue, v1alpha1.ReasonGateOpen, gate.Message
	}
	c.Message = short(c.Message)
	return c
}

func finding(f v1alpha1.Finding) string {
	switch {
	case f.Name != "" && f.Hook != "":
		return f.Name + "/" + f.Hook + ": " + f.Message
	case f.Name != "":
		return f.Name + ": " + f.Message
	}
	return f.Message
}
