// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/report"
)

func gateIs(state v1alpha1.GateState, blocking ...string) *v1alpha1.GateStatus {
	g := &v1alpha1.GateStatus{State: state, Message: "gate"}
	for _, reason := range blocking {
		g.Blocking = append(g.Blocking, v1alpha1.Finding{Reason: reason, Name: "cfg", Hook: "x", Message: strings.Repeat("m", 400)})
	}
	return g
}

func TestConstraints(t *testing.T) {
	hidden := gateIs(v1alpha1.GateOpen, v1alpha1.FindingHidden)
	hidden.Unguarded = 1
	openHook := []report.Hook{hookIn(decide.Open, open)}
	for _, tc := range []struct {
		name               string
		in                 report.Input
		enforced, prepared string // status and reason
	}{
		{"nothing is open, the gate is", report.Input{Phase: phase.Awake, Gate: gateIs(v1alpha1.GateOpen)}, "True WebhooksEnforced", "True GateOpen"},
		{"the gate is lifted", report.Input{Phase: phase.Awake, Gate: gateIs(v1alpha1.GateLifted)}, "True WebhooksEnforced", "True GateLifted"},
		{"the gate is closed for a reason", report.Input{Phase: phase.Awake, Gate: gateIs(v1alpha1.GateClosed, "NotGuarded", "Remediated")},
			"True WebhooksEnforced", "False NotGuarded"},
		{"the gate is closed", report.Input{Phase: phase.Awake, Gate: gateIs(v1alpha1.GateClosed)}, "True WebhooksEnforced", "False GateClosed"},
		{"a label hides what nobody opens", report.Input{Phase: phase.Awake, Gate: hidden}, "True WebhooksEnforced", "False HiddenNotGuarded"},
		{"nothing was judged yet", report.Input{Phase: phase.Awake}, "True WebhooksEnforced", "Unknown NotJudged"},
		{"the Shoot sleeps with hooks open", report.Input{Phase: phase.Asleep, Hooks: openHook, Gate: gateIs(v1alpha1.GateLifted)},
			"False ShootAsleep", "True GateLifted"},
		{"the Shoot sleeps with nothing open", report.Input{Phase: phase.Asleep, Gate: gateIs(v1alpha1.GateOpen)}, "True WebhooksEnforced", "True GateOpen"},
		{"hooks are held after a wake-up", report.Input{Phase: phase.WakingUp, Hooks: openHook, Gate: gateIs(v1alpha1.GateLifted)},
			"False WebhooksFailOpen", "True GateLifted"},
		{"hooks are open past the deadline", report.Input{Phase: phase.Awake, Hooks: []report.Hook{hookIn(decide.StillOpen, open)}, Gate: gateIs(v1alpha1.GateOpen)},
			"False WebhooksStillFailOpen", "True GateOpen"},
		{"the Shoot does not answer with hooks on record", report.Input{Phase: phase.Unreachable, Hooks: openHook, ShootError: "timeout"},
			"Unknown ShootUnreachable", "Unknown NotJudged"},
		{"a hook refuses to be opened", report.Input{Phase: phase.GoingDown, Hooks: []report.Hook{hookIn(decide.NotOpenable)}, Gate: gateIs(v1alpha1.GateLifted)},
			"True WebhooksEnforced", "False NotOpenable"},
		{"hibernation was let go all the same", report.Input{Phase: phase.Asleep, Hooks: openHook, Cycle: &v1alpha1.Cycle{LetGo: true, MayNotWake: "cfg/x"},
			Gate: gateIs(v1alpha1.GateLifted)}, "False WebhooksOpening", "False MayNotWake"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			all := report.Constraints(tc.in)
			g.Expect(all).To(HaveLen(2))
			said := map[gardencorev1beta1.ConditionType]string{}
			for _, c := range all {
				said[c.Type] = string(c.Status) + " " + c.Reason
				g.Expect(c.Message).NotTo(BeEmpty())
				g.Expect(len([]rune(c.Message))).To(BeNumerically("<=", 300))
			}
			g.Expect(said).To(Equal(map[gardencorev1beta1.ConditionType]string{
				v1alpha1.ConstraintWebhooksEnforced: tc.enforced, v1alpha1.ConstraintHibernationPrepared: tc.prepared}))
		})
	}
}

func TestStatusTellsOfTheGateWithinBounds(t *testing.T) {
	g := NewWithT(t)
	in := report.Input{Phase: phase.Awake, Gate: gateIs(v1alpha1.GateClosed, make([]string, 30)...)}
	in.Findings = in.Gate.Blocking
	s := report.Status(in)
	g.Expect(s.Findings).To(HaveLen(v1alpha1.MaxFindings))
	g.Expect(s.Gate.Blocking).To(HaveLen(v1alpha1.MaxFindings))
	g.Expect([]rune(s.Findings[0].Message)).To(HaveLen(300))
	g.Expect(in.Gate.Blocking).To(HaveLen(30), "the input stays as it is")
	_, reason, _ := report.Condition(in)
	g.Expect(reason).To(Equal(v1alpha1.ReasonEnforced), "the condition is free of gate and findings")
}
