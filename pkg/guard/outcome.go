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
		Report:         *p.config.Mode == v1alpha1.ModeReport || p.readOnly != "",
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
		Now:   p.now, Phase: p.phase, Call: p.call(), MayOpenNew: record.MayOpenNew(p.state),
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
		Exists: true, Phase: p.phase, OnRecord: hooksOnRecord(p.state),
		DeadlinePassed: p.facts.DeadlinePassed, HibernationEnabled: p.facts.HibernationEnabled,
		ConfigError: p.configError,
	}
	for _, d := range p.decisions {
		if next := d.decision.NextCheck; next > 0 && (out.NextCheck == 0 || next < out.NextCheck) {
			out.NextCheck = next
		}
	}
	switch {
	case p.phase == phase.Awake && (len(p.state.Hooks) > 0 || p.readOnly != "" || p.toldUnknown()):
		if out.NextCheck == 0 || out.NextCheck > p.guard.SyncPeriod {
			out.NextCheck = p.guard.SyncPeriod
		}
	case (p.phase == phase.GoingDown || p.phase == phase.WakingUp) && out.NextCheck == 0 && p.onRecord():
		out.NextCheck = 10 * time.Second
	}
	if len(p.failures) > 0 {
		out.NextCheck = p.memory.backOff()
	} else if p.conn != nil && p.shootError == nil {
		p.memory.failed = 0
	}
	return out
}
