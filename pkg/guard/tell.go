// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apply"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/report"
)

const (
	// shootReportTimeout bounds the writing of report and events in the Shoot (design R12).
	shootReportTimeout = 3 * time.Second
	// statusWriteTries bounds the tries of a status write when the extension library writes the status at the same time.
	statusWriteTries = 5
)

// errRecordChanged says that somebody else wrote the record since this pass read it.
var errRecordChanged = errors.New("the record in status.state was changed by somebody else")

// recordFirst writes the state if an original that is about to be needed is not on durable record yet.
func (p *pass) recordFirst(ctx context.Context) error {
	for key, d := range p.decisions {
		if d.decision.Action != decide.OpenIt {
			continue
		}
		if stored, known := p.stored.Hooks[key]; !known || stored.Original != d.decision.Record.Original {
			return p.writeStatus(ctx, p.encodeState)
		}
	}
	return nil
}

// encodeState puts the state into the Extension, unless it is not ours to write.
func (p *pass) encodeState(e *extensionsv1alpha1.Extension) error {
	if p.readOnly != "" || apiequality.Semantic.DeepEqual(p.state, p.stored) {
		return nil
	}
	encoded, err := codec.EncodeState(p.state)
	if err != nil {
		return err
	}
	e.Status.State = encoded
	return nil
}

// writeStatus changes the Extension's status on a fresh copy with optimistic lock. The record must stand as this pass read it.
func (p *pass) writeStatus(ctx context.Context, changes ...func(*extensionsv1alpha1.Extension) error) error {
	readState := p.extension.Status.State.DeepCopy()
	for try := 1; ; try++ {
		before := p.extension.DeepCopy()
		for _, change := range changes {
			if err := change(p.extension); err != nil {
				return err
			}
		}
		if apiequality.Semantic.DeepEqual(before.Status, p.extension.Status) {
			p.stored = p.state.DeepCopy()
			return nil
		}
		err := p.guard.Seed.Status().Patch(ctx, p.extension, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			p.stored = p.state.DeepCopy()
			return nil
		}
		if !apierrors.IsConflict(err) || try == statusWriteTries {
			return fmt.Errorf("failed to write the Extension's status: %w", err)
		}
		fresh := &extensionsv1alpha1.Extension{}
		if err := p.guard.Fresh.Get(ctx, p.key, fresh); err != nil {
			return fmt.Errorf("failed to read the Extension again: %w", err)
		}
		if !sameRaw(fresh.Status.State, readState) {
			return errRecordChanged
		}
		p.extension = fresh
	}
}

func sameRaw(a, b *runtime.RawExtension) bool {
	var left, right any
	if a != nil && len(a.Raw) > 0 && json.Unmarshal(a.Raw, &left) != nil {
		return false
	}
	if b != nil && len(b.Raw) > 0 && json.Unmarshal(b.Raw, &right) != nil {
		return false
	}
	return apiequality.Semantic.DeepEqual(left, right)
}

// tell writes state, condition and providerStatus, on change.
func (p *pass) tell(ctx context.Context) error {
	in := p.reportInput()
	err := p.writeStatus(ctx, p.encodeState, func(e *extensionsv1alpha1.Extension) error {
		p.setCondition(e, in)
		return p.setProviderStatus(e, in)
	})
	if err == nil && !p.lifecycle { // a call has no time for the garden; the loop goes on after it
		p.tellGarden(ctx, in)
	}
	return err
}

// tellGarden writes the constraints on change, and looks after them once a care period. Its failure changes nothing; the next
// pass tries again.
func (p *pass) tellGarden(ctx context.Context, in report.Input) {
	if p.guard.Garden == nil || p.released() && !p.onRecord() { // the release is about to remove them
		return
	}
	constraints := report.Constraints(in)
	if apiequality.Semantic.DeepEqual(constraints, p.memory.constraints) && p.now.Sub(p.memory.toldGarden) < p.guard.SyncPeriod {
		return
	}
	if err := p.guard.Garden.Write(ctx, client.ObjectKeyFromObject(p.cluster.Shoot), constraints); err != nil {
		p.log.Error(err, "Failed to write constraints of the Shoot in the garden")
		return
	}
	p.memory.constraints, p.memory.toldGarden = constraints, p.now
}

func (p *pass) reportInput() report.Input {
	told := p.phase
	if told == phase.WakingUp && p.decisions != nil && !p.onRecord() {
		told = phase.Awake // this pass has finished the wake-up
	}
	in := report.Input{Phase: told, Mode: *p.config.Mode, Cycle: p.state.Cycle, ReadOnly: p.readOnly}
	in.Gate, in.Findings = p.cared.status, p.cared.findings
	if before := p.before(); in.Gate == nil {
		in.Gate, in.Findings = before.Gate, before.Findings // judged while the Shoot is awake
	}
	if p.configError != nil {
		in.ConfigError = p.configError.Error()
	}
	if p.shootError != nil {
		in.ShootError = p.shootError.Error()
	}
	if p.decisions == nil {
		in.Hooks = report.FromRecord(p.state.Hooks)
		return in
	}
	for _, d := range p.decisions {
		h := report.Hook{Decision: d.decision, OpenNow: standsOpen(d) || d.decision.State == decide.OriginalUnknown}
		if rec := d.decision.Record; rec != nil {
			h.Kind, h.Configuration, h.Hook = rec.Kind, rec.Configuration, rec.Hook
		} else if d.subject.Hook != nil {
			h.Kind, h.Configuration, h.Hook = string(d.subject.Configuration.Kind), d.subject.Configuration.Name, d.subject.Hook.Name
		} else {
			continue // gone and forgotten
		}
		if failed := p.failures[keyOf(d.subject.Configuration)]; failed != nil && d.decision.Action != decide.None {
			h.Reason, h.Message = v1alpha1.ReasonWriteFailed, failed.Error()
		}
		in.Hooks = append(in.Hooks, h)
	}
	return in
}

func (p *pass) setCondition(e *extensionsv1alpha1.Extension, in report.Input) {
	if p.decisions == nil && p.toldUnknown() && p.phase != phase.Asleep {
		return // it stands until the Shoot is seen again
	}
	status, reason, message := report.Condition(in)
	var codes []gardencorev1beta1.ErrorCode
	if status == gardencorev1beta1.ConditionFalse {
		codes = append(codes, gardencorev1beta1.ErrorProblematicWebhook)
	}
	old := helper.GetOrInitConditionWithClock(p.guard.Clock, e.Status.Conditions, gardencorev1beta1.ShootSystemComponentsHealthy)
	updated := helper.UpdatedConditionWithClock(p.guard.Clock, old, status, reason, message, codes...)
	if old.Status == updated.Status && old.Reason == updated.Reason && old.Message == updated.Message {
		return
	}
	e.Status.Conditions = helper.MergeConditions(e.Status.Conditions, updated)
}

// setProviderStatus keeps what the last cycle came to as long as nothing new is to be told.
func (p *pass) setProviderStatus(e *extensionsv1alpha1.Extension, in report.Input) error {
	status, before := report.Status(in), p.before()
	if p.phase == phase.Awake && !p.hadRecord && p.state.Cycle == nil {
		status.Restored, status.RestoredByOwner = before.Restored, before.RestoredByOwner
		if p.decisions == nil && before.Open == 0 {
			status.Hooks, status.More = before.Hooks, before.More
		}
	}
	if apiequality.Semantic.DeepEqual(before, status) {
		return nil
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("failed to encode GuardStatus: %w", err)
	}
	e.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	return nil
}

// before is the status as it was when the pass began; empty if there was none.
func (p *pass) before() *v1alpha1.GuardStatus {
	status := &v1alpha1.GuardStatus{}
	if old := p.extension.Status.ProviderStatus; old == nil || json.Unmarshal(old.Raw, status) != nil {
		return &v1alpha1.GuardStatus{}
	}
	return status
}

// tellShoot writes the report and events in the Shoot. That comes last, and its failure changes nothing.
func (p *pass) tellShoot(ctx context.Context) {
	if len(p.writes) > 0 {
		p.eventsOnSeed()
	}
	begin := len(p.writes) > 0 || len(p.state.Hooks) > 0 || p.hadRecord || p.cared.status != nil
	if !begin && !p.lifecycle {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shootReportTimeout)
	defer cancel()
	if err := p.writeReport(ctx, p.extension.Status.ProviderStatus, begin); err != nil {
		p.log.V(1).Info("Report in the Shoot was not written", "reason", err.Error())
	}
	for _, w := range p.writes {
		if w.action == decide.ReleaseIt {
			continue
		}
		reason, note := describe(w)
		if err := apply.Event(ctx, p.conn.Client, w.configuration, corev1.EventTypeNormal, reason, string(w.action), note, p.now); err != nil {
			p.log.V(1).Info("Event in the Shoot was not written", "reason", err.Error())
			return
		}
	}
}

// writeReport writes a GuardStatus for the Shoot's owner, unless it is what was written last. One that does not exist is begun
// only if begin says so.
func (p *pass) writeReport(ctx context.Context, status *runtime.RawExtension, begin bool) error {
	if status == nil {
		return errors.New("there is no GuardStatus")
	}
	text, err := yaml.JSONToYAML(status.Raw)
	if err != nil {
		return fmt.Errorf("failed to encode the report: %w", err)
	}
	if p.memory.report == string(text) {
		return nil
	}
	if err := apply.Report(ctx, p.conn.Client, string(text), begin); err != nil {
		return err
	}
	if begin {
		p.memory.report = string(text)
	}
	return nil
}

func describe(w write) (reason, note string) {
	if w.action == decide.OpenIt {
		return v1alpha1.EventSetFailOpen, "Set fail-open for hibernation and wake-up: " + strings.Join(w.hooks, ", ")
	}
	return v1alpha1.EventPolicyRestored, "Given its own policy back: " + strings.Join(w.hooks, ", ")
}

// eventsOnSeed tells on the Extension how many configurations were opened and restored in this pass.
func (p *pass) eventsOnSeed() {
	count := map[decide.Action]int{}
	for _, w := range p.writes {
		count[w.action]++
	}
	for action, reason := range map[decide.Action]string{decide.OpenIt: v1alpha1.EventSetFailOpen, decide.RestoreIt: v1alpha1.EventPolicyRestored} {
		if n := count[action]; n > 0 && p.guard.Events != nil {
			p.guard.Events.Eventf(p.extension, nil, corev1.EventTypeNormal, reason, string(action), "%d webhook configurations of the Shoot", n)
		}
	}
}
