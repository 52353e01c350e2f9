// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
)

// beginCycle begins a cycle at gardenlet's word.
func (p *pass) beginCycle() {
	if !p.call() {
		return
	}
	direction := v1alpha1.DirectionHibernate
	if p.phase == phase.WakingUp {
		direction = v1alpha1.DirectionWakeUp
	}
	record.BeginCycle(p.state, direction, p.now)
	p.facts.DeadlinePassed = record.DeadlinePassed(p.state, p.config.WakingUp.Deadline.Duration, p.now)
}

// call says whether this pass is the lifecycle call of a transition.
func (p *pass) call() bool {
	return p.facts.TransitionCall && (p.phase == phase.GoingDown || p.phase == phase.WakingUp)
}

// transitionCheck is after what time a Shoot that goes to sleep or wakes up is looked at again when nothing happens.
const transitionCheck = 10 * time.Second

// holdBack says whether this flow attempt is held back because of cause, and notes it.
func (p *pass) holdBack(cause error) error {
	cycle := p.state.Cycle
	if cycle == nil {
		return nil
	}
	if cause == nil {
		record.NothingHeldBack(cycle)
		return nil
	}
	attempt := p.extension.Annotations[v1beta1constants.GardenerTimestamp]
	if !record.HoldBack(cycle, attempt, p.now) {
		cycle.MayNotWake = cause.Error()
		return nil
	}
	return fmt.Errorf("hibernation is held back, the Shoot might not wake up: %w", cause)
}

// settings in force.
func (p *pass) settings() decide.Settings {
	return decide.Settings{
		Report:         *p.config.Mode == v1alpha1.ModeReport || p.readOnly != "" || p.isSeed,
		OpenValidating: *p.config.OpenTimeouts.Validating, OpenMutating: *p.config.OpenTimeouts.Mutating,
		Stabilization:  p.config.Stabilization.Duration,
		RestoreByForce: *p.config.WakingUp.AfterDeadline == v1alpha1.AfterDeadlineRestore,
	}
}

// shootFacts are what all decisions of this pass share.
func (p *pass) shootFacts() decide.Shoot {
	var begun time.Time
	if p.state.Cycle != nil {
		begun = p.state.Cycle.Begun.Time
	}
	return decide.Shoot{
		Begun: begun,
		Now:   p.now, Phase: p.phase, Call: p.call(), MayOpenNew: record.MayOpenNew(p.state) && p.seedError == nil,
		DeadlinePassed: p.facts.DeadlinePassed, IsHibernated: p.facts.IsHibernated,
		GiveUp:   p.phase == phase.GoingDown && p.overdue(),
		Settings: p.settings(),
	}
}

// overdue says whether the hibernation has lasted too long and no operation is running.
func (p *pass) overdue() bool {
	if !record.GoingDownOverdue(p.state, p.config.GoingDown.Deadline.Duration, p.now) {
		return false
	}
	op := p.cluster.Shoot.Status.LastOperation
	if op != nil && op.State == gardencorev1beta1.LastOperationStateFailed {
		return true
	}
	called, err := time.Parse(time.RFC3339Nano, p.extension.Annotations[v1beta1constants.GardenerTimestamp])
	return err != nil || p.now.Sub(called) > operationRuns
}

// outcome of the pass as far as it has come.
func (p *pass) outcome() Outcome {
	out := Outcome{
		Exists: true, Phase: p.phase, OnRecord: hooksOnRecord(p.state), InTransition: p.inTransition(), Claimed: len(p.state.Claims) > 0,
		DeadlinePassed: p.facts.DeadlinePassed, HibernationEnabled: p.facts.HibernationEnabled,
		ConfigError: p.configError,
	}
	for _, d := range p.decisions {
		if next := d.decision.NextCheck; next > 0 && (out.NextCheck == 0 || next < out.NextCheck) {
			out.NextCheck = next
		}
	}
	switch {
	case p.phase == phase.Awake && !p.lifecycle:
		if next := p.nextCare(); out.NextCheck == 0 || out.NextCheck > next {
			out.NextCheck = next
		}
	case (p.phase == phase.GoingDown || p.phase == phase.WakingUp) && out.NextCheck == 0:
		out.NextCheck = transitionCheck // also when all is given back: then the Shoot is about to be awake
	}
	if len(p.failures) > 0 {
		out.NextCheck = p.memory.backOff()
	} else if p.conn != nil && p.shootError == nil {
		p.memory.failed = 0
	}
	return out
}
