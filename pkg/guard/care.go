// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apply"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/report"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/snapshot"
)

const (
	// careRetry is after what time a pass over an awake Shoot is tried again that could not see or label what it should; it
	// doubles up to the sync period.
	careRetry = 2 * time.Second
	// kyvernoPasses is how many passes with Kyverno ready may find the label in its ConfigMap alone before that is told.
	kyvernoPasses = 3
	// serviceAge is how long it is remembered whether a Service exists.
	serviceAge = time.Hour
	// startWindow is how long after the start the first passes over awake Shoots are spread over the sync period, so that they do
	// not all begin at once.
	startWindow = time.Minute
	// movingPatience bounds what is done for an Extension that is released while the control plane moves.
	movingPatience = 5 * time.Second
)

// cared is what a pass over an awake Shoot came to.
type cared struct {
	status   *v1alpha1.GateStatus
	findings []v1alpha1.Finding
	failures map[string]string // by claim key
	waits    bool              // for Kyverno
}

// cares says whether this pass is about the gate: the loop's over an awake Shoot, and any once the Extension goes and nothing is
// open any more.
func (p *pass) cares() bool {
	if p.released() {
		return p.phase == phase.Awake || p.phase == phase.WakingUp && !hooksOnRecord(p.state)
	}
	return p.phase == phase.Awake && !p.lifecycle
}

// released says whether the Extension is about to go.
func (p *pass) released() bool { return p.extension.DeletionTimestamp != nil }

// care claims and gives up, and looks ahead.
func (p *pass) care(ctx context.Context) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	if p.released() {
		return nil
	}
	p.waitForKyverno(ctx)
	subjects := p.subjects()
	p.cared.findings = gate.Warnings(gate.Ahead{
		Now: p.now, Subjects: subjects, Missing: p.missingServices(ctx, subjects),
		Schedules: p.schedules(), Constraints: p.cluster.Shoot.Status.Constraints,
		OpenValidating: *p.config.OpenTimeouts.Validating, OpenMutating: *p.config.OpenTimeouts.Mutating,
	})
	if p.isSeed {
		p.cared.findings = slices.Insert(p.cared.findings, 0, managedSeed)
	}
	return ctx.Err()
}

// claim decides and acts on the claims in rounds, until nothing is left to do.
func (p *pass) claim(ctx context.Context) error {
	p.cared.failures = map[string]string{}
	var cm *gate.ConfigMap
	for range maxRounds {
		result := gate.Decide(gate.Input{
			Now: p.now, Subjects: p.subjects(), Claims: p.state.Claims, Settings: p.gateSettings(), ConfigMap: cm,
			Failures: p.cared.failures, KyvernoSlow: p.memory.kyvernoWaits >= kyvernoPasses,
		})
		p.state.Claims = result.Claims
		p.cared.status, p.cared.waits = &result.Status, result.KyvernoWaits
		if result.ReadConfigMap != "" {
			cm = snapshot.KyvernoConfigMap(ctx, p.conn.Client, result.ReadConfigMap)
			continue
		}
		if len(result.Actions) == 0 || ctx.Err() != nil {
			break
		}
		if err := p.recordClaims(ctx, result.Actions); err != nil {
			return err
		}
		for _, action := range result.Actions {
			cm = p.label(ctx, action, cm)
		}
	}
	return ctx.Err()
}

// recordClaims writes the record if a label is about to be set that is not on durable record.
func (p *pass) recordClaims(ctx context.Context, actions []gate.Action) error {
	for _, a := range actions {
		if a.Set && !apiequality.Semantic.DeepEqual(p.stored.Claims[a.Key], p.state.Claims[a.Key]) {
			return p.writeStatus(ctx, p.encodeState)
		}
	}
	return nil
}

// label sends the patch of an action and takes over what the API server answers. It returns Kyverno's ConfigMap as it is known then.
func (p *pass) label(ctx context.Context, action gate.Action, cm *gate.ConfigMap) *gate.ConfigMap {
	patch, err := gate.Patch(action, p.state.Claims[action.Key])
	switch {
	case err != nil:
	case action.Configuration != nil:
		fresh, patchErr := apply.Claim(ctx, p.conn.Client, *action.Configuration, patch)
		if err = patchErr; err == nil {
			p.replace(*action.Configuration, answer{configuration: fresh, exists: true})
		}
	default:
		fresh, patchErr := apply.ClaimKyverno(ctx, p.conn.Client, action.ConfigMap.Namespace, patch)
		if err = patchErr; err == nil {
			cm = snapshot.ConfigMapFacts(fresh)
		}
	}
	if err != nil {
		p.cared.failures[action.Key] = err.Error()
		p.guard.Shoots.Failed(p.key.Namespace, err)
		return cm
	}
	p.log.Info("Label for Gardener's hibernation constraint changed", "claim", action.Key, "set", action.Set)
	return cm
}

// waitForKyverno counts the passes in which Kyverno, though ready, has not taken the label over from its ConfigMap.
func (p *pass) waitForKyverno(ctx context.Context) {
	switch {
	case !p.cared.waits:
		p.memory.kyvernoWaits = 0
	case p.memory.kyvernoWaits <= kyvernoPasses && p.kyvernoReady(ctx):
		p.memory.kyvernoWaits++
	}
}

func (p *pass) kyvernoReady(ctx context.Context) bool {
	for _, c := range p.configurations {
		if c.Labels[gate.KyvernoLabel] != gate.KyvernoName || len(c.Hooks) == 0 || c.Hooks[0].Service == nil {
			continue
		}
		ref := refOf(c.Hooks[0].Service.Namespace, c.Hooks[0].Service.Name, c.Hooks[0].Service.Port)
		cluster := snapshot.Cluster(ctx, p.conn.Client, p.conn.Now(p.now))
		facts := snapshot.Backends(ctx, p.conn.Client, map[backend.Ref]struct{}{ref: {}})[ref]
		return backend.Judge(cluster, ref, facts).State == backend.Ready
	}
	return false
}

// missingServices are the Services of hooks in scope that do not exist. Each is asked for once an hour at most.
func (p *pass) missingServices(ctx context.Context, subjects []gate.Subject) map[types.NamespacedName]bool {
	missing, wanted := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for _, s := range subjects {
		for i, h := range s.Configuration.Hooks {
			if s.Hooks[i].Scope.InScope && h.Service != nil {
				wanted[types.NamespacedName{Namespace: h.Service.Namespace, Name: h.Service.Name}] = true
			}
		}
	}
	for key := range wanted {
		known, asked := p.memory.services[key]
		if !asked || p.now.Sub(known.at) >= serviceAge {
			exists, err := snapshot.ServiceExists(ctx, p.conn.Client, client.ObjectKey(key))
			if err != nil {
				continue // asked again in the next pass
			}
			known = service{exists: exists, at: p.now}
			p.memory.services[key] = known
		}
		if !known.exists {
			missing[key] = true
		}
	}
	maps.DeleteFunc(p.memory.services, func(key types.NamespacedName, _ service) bool { return !wanted[key] })
	return missing
}

// nextCare is when the loop looks at an awake Shoot again: after the sync period, give or take a tenth; earlier if something could
// not be done, or is about to happen.
func (p *pass) nextCare() time.Duration {
	period := wait.Jitter(p.guard.SyncPeriod*9/10, 2.0/9)
	settling := p.cared.waits && p.memory.kyvernoWaits <= kyvernoPasses && p.memory.kyvernoWaits > 0
	if p.shootError == nil && len(p.cared.failures) == 0 && !settling {
		p.memory.careFailed = 0
		return period
	}
	p.memory.careFailed++
	return min(period, careRetry<<min(p.memory.careFailed-1, 16))
}

// startsLater is how long the first pass over an awake Shoot after a start of the controller is put off; zero if it is not, or
// something has changed meanwhile.
func (p *pass) startsLater() time.Duration {
	m := p.memory
	seen := string(p.extension.UID) + p.extension.Annotations[v1beta1constants.GardenerTimestamp] + "/" + p.cluster.ObjectMeta.ResourceVersion
	if !m.started {
		m.started, m.startSeen = true, seen
		sinceStart := p.now.Sub(p.guard.startedAt(p.now))
		if p.now.Sub(p.extension.CreationTimestamp.Time) > p.guard.SyncPeriod && sinceStart < startWindow {
			m.startAt = p.now.Add(time.Duration(rand.Int64N(int64(p.guard.SyncPeriod)))) // #nosec G404 -- it only spreads load
		}
	}
	if seen != m.startSeen {
		m.startAt = time.Time{}
	}
	return max(0, m.startAt.Sub(p.now))
}

// releaseMoving gives the claims up, and tells the Shoot's owner what is left open, when the Extension is released while the
// control plane moves. That is tried once: nothing may hold a migration up.
func (p *pass) releaseMoving(ctx context.Context) {
	if !p.facts.DeploymentFound || p.facts.Replicas == 0 || len(p.state.Claims) == 0 && len(p.state.Hooks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, movingPatience)
	defer cancel()
	err := p.try(ctx, p.guard.Shoots.Get)
	if err == nil {
		err = p.claim(ctx)
	}
	var status []byte
	if err == nil {
		status, err = json.Marshal(report.Status(p.reportInput()))
	}
	if err == nil {
		err = p.writeReport(ctx, &runtime.RawExtension{Raw: status}, hooksOnRecord(p.state))
	}
	if err != nil {
		p.log.Error(err, "Failed to take leave of the Shoot before its control plane moves")
	}
}
