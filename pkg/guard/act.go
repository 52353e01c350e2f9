// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apply"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/snapshot"
)

// errNoTime is why a hook was not opened when nothing was wrong but the time.
var errNoTime = errors.New("its API server or its owner left no time")

// maxRounds is how often a pass decides again after a write or a conflict (design R3).
const maxRounds = 5

// plan is the one patch to one configuration in a round.
type plan struct {
	configuration hook.Configuration
	action        decide.Action
	patch         hook.Patch
	hooks         []string
}

// write is a patch that the API server accepted.
type write struct {
	configuration hook.Configuration
	action        decide.Action
	hooks         []string
}

// act opens, restores and releases. In a hibernation call nothing is read before the last open patch but the configurations.
func (p *pass) act(ctx context.Context) error {
	openFirst := p.phase == phase.GoingDown && p.call()
	if !openFirst {
		p.readWorld(ctx)
	}
	p.failures = map[configurationKey]error{}
	if p.call() {
		p.memory.tryAgain()
	}
	if err := p.carryOut(ctx); err != nil {
		return err
	}
	if openFirst {
		p.readWorld(ctx)
		p.noteVerdicts()
		if err := p.carryOut(ctx); err != nil { // what its owner closed after an earlier call, and nothing serves any more
			return err
		}
	}
	p.decideAll()
	p.settle()
	return ctx.Err()
}

// carryOut writes what was decided until there is nothing left to write, in a few rounds at most.
func (p *pass) carryOut(ctx context.Context) error {
	for range maxRounds {
		p.decideAll()
		plans := p.plans()
		if len(plans) == 0 || ctx.Err() != nil { // a call tells what was written all the same
			return nil
		}
		if err := p.recordFirst(ctx); err != nil {
			return err
		}
		p.applyAll(ctx, plans)
	}
	return nil
}

// applyAll sends the patches in parallel and takes over what the API server answers.
func (p *pass) applyAll(ctx context.Context, plans []plan) {
	var group sync.WaitGroup
	answers := make([]answer, len(plans))
	for i, plan := range plans {
		group.Go(func() { answers[i] = p.apply(ctx, plan) })
	}
	group.Wait()
	for i, a := range answers {
		p.take(plans[i], a)
	}
}

// answer is what became of a plan.
type answer struct {
	configuration hook.Configuration
	exists        bool
	patchError    error // of the patch
	readError     error // of reading the configuration again after it
}

func (p *pass) apply(ctx context.Context, plan plan) answer {
	fresh, err := apply.Patch(ctx, p.conn.Client, plan.configuration, plan.patch)
	if err == nil {
		return answer{configuration: fresh, exists: true}
	}
	a := answer{configuration: plan.configuration, exists: true, patchError: err}
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		a.configuration, a.exists, a.readError = snapshot.Configuration(ctx, p.conn.Client, plan.configuration)
	}
	return a
}

// take takes over the answer to a plan: conflicts are decided again in the next round, other failures wait for the next pass.
func (p *pass) take(plan plan, a answer) {
	key := keyOf(plan.configuration)
	switch err := a.patchError; {
	case err == nil:
		p.writes = append(p.writes, write{plan.configuration, plan.action, plan.hooks})
		if plan.action == decide.OpenIt {
			p.memory.opens[key] = p.memory.opens[key].Opened(p.now)
		}
		delete(p.memory.refusals, key)
	case a.readError != nil:
		p.failures[key] = a.readError
		return // it is not gone, only not known
	case apierrors.IsInvalid(err):
		p.refused(plan, a)
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		p.failures[key] = err
		p.guard.Shoots.Failed(p.key.Namespace, err)
	}
	p.replace(plan.configuration, a)
}

// refused notes that the API server finds the configuration invalid with our patch. Twice for the same object: it is the
// object's own invalidity, since our patch adds none.
func (p *pass) refused(plan plan, a answer) {
	key := keyOf(plan.configuration)
	r := p.memory.refusals[key]
	if r.version != plan.configuration.ResourceVersion {
		r = refusal{version: plan.configuration.ResourceVersion}
	}
	r.times++
	r.message = a.patchError.Error()
	p.memory.refusals[key] = r
	if r.times < 2 || !a.exists || a.configuration.ResourceVersion != r.version {
		return
	}
	if plan.action == decide.OpenIt {
		opens := p.memory.opens[key]
		opens.Refused, opens.RefusedAt = r.message, r.version
		p.memory.opens[key] = opens
		return
	}
	p.failures[key] = a.patchError
}

func (p *pass) replace(old hook.Configuration, a answer) {
	for i, c := range p.configurations {
		if c.Kind != old.Kind || c.Name != old.Name {
			continue
		}
		if a.exists {
			p.configurations[i] = a.configuration
		} else {
			p.configurations = append(p.configurations[:i], p.configurations[i+1:]...)
		}
		return
	}
}

// plans groups the decisions into one patch per configuration: what is to be opened goes first.
func (p *pass) plans() []plan {
	var out []plan
	for _, c := range p.configurations {
		if p.failures[keyOf(c)] != nil {
			continue
		}
		next, err := p.planFor(c)
		if err != nil {
			p.failures[keyOf(c)] = err
			p.log.Error(err, "Failed to plan a patch", "kind", c.Kind, "configuration", c.Name)
			continue
		}
		if !next.patch.Empty() {
			out = append(out, next)
		}
	}
	return out
}

func (p *pass) planFor(c hook.Configuration) (plan, error) {
	opens, from, to := map[string]hook.Values{}, map[string]hook.Values{}, map[string]hook.Values{}
	open, remaining := map[string]v1alpha1.Original{}, map[string]v1alpha1.Original{}
	owners := map[string][]v1alpha1.FieldOwner{}
	release, held := len(c.Hooks) == 0, false
	for _, h := range c.Hooks {
		d, known := p.decisions[c.Key(h)]
		if !known {
			continue
		}
		if rec := d.decision.Record; rec != nil {
			held = held || rec.Returned == nil
			owners[h.Name] = rec.FormerOwners
			if d.decision.Action == decide.OpenIt || standsOpen(d) {
				open[h.Name] = rec.Original
				if d.decision.Action != decide.RestoreIt {
					remaining[h.Name] = rec.Original
				}
			}
		}
		switch d.decision.Action {
		case decide.OpenIt:
			opens[h.Name] = d.decision.To
		case decide.RestoreIt:
			from[h.Name], to[h.Name] = d.decision.From, d.decision.To
		case decide.ReleaseIt:
			release = true
		}
	}
	var err error
	next := plan{configuration: c}
	switch {
	case len(opens) > 0:
		next.action, next.hooks = decide.OpenIt, names(opens)
		if next.patch, err = hook.OpenPatch(c, opens, open); next.patch.WithoutAnnotation {
			p.log.Info("Annotation has no room, the originals are on record only", "kind", c.Kind, "configuration", c.Name)
		}
	case len(to) > 0:
		next.action, next.hooks = decide.RestoreIt, names(to)
		next.patch, err = hook.RestorePatch(c, from, to, remaining)
	case release && len(open) == 0 && !held:
		next.action = decide.ReleaseIt
		next.patch, err = p.release(c, owners)
	}
	return next, err
}

// release removes what is left of ours: the annotation first, since removing it is a write of ours, too.
func (p *pass) release(c hook.Configuration, owners map[string][]v1alpha1.FieldOwner) (hook.Patch, error) {
	if _, annotated := c.Annotations[v1alpha1.OriginalsAnnotation]; annotated {
		return hook.RestorePatch(c, nil, nil, nil)
	}
	patch, _, err := hook.ReleasePatch(c, owners)
	return patch, err
}

// standsOpen says whether a hook on record is not at its original.
func standsOpen(d decided) bool {
	rec, h := d.decision.Record, d.subject.Hook
	return rec != nil && h != nil && h.Values != hook.Values{Policy: rec.Original.FailurePolicy, Timeout: rec.Original.TimeoutSeconds}
}

// settle notes the first ready node, forgets hooks that are done, and ends the cycle when nothing is left to do.
func (p *pass) settle() {
	if p.state.Cycle == nil && len(p.state.Hooks) > 0 {
		direction := v1alpha1.DirectionWakeUp
		if p.facts.HibernationEnabled {
			direction = v1alpha1.DirectionHibernate
		}
		record.HoldOnly(p.state, direction, p.now)
	}
	cycle := p.state.Cycle
	if cycle == nil {
		return
	}
	if p.phase == phase.WakingUp && cycle.FirstReadyNode == nil && p.world.cluster.Err == nil &&
		p.world.cluster.ReadyNode() && p.world.cluster.TunnelUp() {
		cycle.FirstReadyNode = &metav1.Time{Time: p.now}
	}
	if p.phase == phase.GoingDown && !p.overdue() {
		return
	}
	if p.finished() {
		for key, d := range p.decisions {
			if d.decision.State == decide.Done {
				delete(p.state.Hooks, key)
			}
		}
		if p.phase != phase.WakingUp || cycle.FirstReadyNode != nil { // until then new hooks may still stand in the way of nodes
			record.EndCycle(p.state, p.now)
		}
	}
	if p.facts.DeadlinePassed {
		record.EndCycle(p.state, p.now)
	}
}

// finished says whether every hook on record is done or gone.
func (p *pass) finished() bool {
	for key := range p.state.Hooks {
		if d := p.decisions[key].decision; d.State != decide.Done && d.State != decide.Gone {
			return false
		}
	}
	return true
}

// mayNotWake returns why the Shoot may not wake up if it sleeps now; nil when all is open. It names three hooks at most.
func (p *pass) mayNotWake() error {
	var stuck []string
	for _, key := range names(p.decisions) {
		d := p.decisions[key]
		s := d.subject
		if !s.Scope.InScope || s.Hook == nil {
			continue
		}
		switch {
		case d.decision.State == decide.NotOpenable:
			stuck = append(stuck, fmt.Sprintf("%s/%s cannot be opened: %s", s.Configuration.Name, s.Hook.Name, d.decision.Message))
		case d.decision.Action == decide.OpenIt:
			cause := p.failures[keyOf(s.Configuration)]
			if cause == nil {
				cause = errNoTime
			}
			stuck = append(stuck, fmt.Sprintf("%s/%s could not be opened: %v", s.Configuration.Name, s.Hook.Name, cause))
		}
	}
	if stuck = append(stuck, p.unopened()...); len(stuck) == 0 {
		return nil
	}
	const most = 3
	if more := len(stuck) - most; more > 0 {
		stuck = append(stuck[:most], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(stuck, "; "))
}
