// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/shoot"
)

const (
	// operationRuns is how old gardenlet's last call may be for its operation to count as running (design R8).
	operationRuns = 20 * time.Minute
	// actPatience bounds reading and writing in the Shoot in a lifecycle call, so that what was not opened can still be told.
	actPatience = 14 * time.Second
)

// pass is one pass over one Shoot.
type pass struct {
	guard      *Guard
	log        logr.Logger
	key        types.NamespacedName
	lifecycle  bool
	now, begun time.Time // the pass; the cycle when decisions were made last
	memory     *memory

	extension   *extensionsv1alpha1.Extension
	cluster     *extensions.Cluster
	facts       phase.Input
	config      *v1alpha1.GuardConfig
	configError error
	state       *v1alpha1.GuardState
	stored      *v1alpha1.GuardState // as it stands on the seed
	readOnly    string               // why the state is not written; empty when it is

	phase          phase.Phase
	conn           *shoot.Connection
	fellBack       bool // conn is by Gardener's own kubeconfig
	shootError     error
	configurations []hook.Configuration
	decisions      map[string]decided
	failures       map[configurationKey]error
	world          world
	hadRecord      bool
	writes         []write
	isSeed         bool
	seedError      error
	cared          cared
}

type decided struct {
	subject  decide.Subject
	decision decide.Decision
}

// run reads the seed, derives the phase and goes on as the phase wants.
func (p *pass) run(ctx context.Context) (Outcome, error) {
	if err := p.readSeed(ctx); err != nil {
		if apierrors.IsNotFound(err) {
			p.guard.Shoots.Close(p.key.Namespace)
			return Outcome{}, nil
		}
		return Outcome{Exists: true}, err
	}
	p.facts.APIAnswers = true
	p.phase = phase.Of(p.facts)
	switch p.phase {
	case phase.Moving, phase.Deleting:
		if p.phase == phase.Moving && p.released() {
			p.releaseMoving(ctx)
		}
		p.guard.Shoots.Close(p.key.Namespace)
		return p.outcome(), nil
	case phase.Asleep:
		p.guard.Shoots.Close(p.key.Namespace)
		record.Slept(p.state)
		p.memory.readyNodeSince = time.Time{} // whether or not the last node was seen to go
		return p.outcome(), p.tell(ctx)
	case phase.Awake:
		if later := p.startsLater(); later > 0 && !p.lifecycle && !p.released() && p.nothingOnRecord() {
			p.guard.Shoots.Close(p.key.Namespace)
			out, err := p.outcome(), p.tell(ctx)
			out.NextCheck = later
			return out, err
		}
	}
	return p.see(ctx)
}

// readSeed reads all that the seed knows: the Extension afresh, since it is written; in a lifecycle call the rest too, since
// the cache may be behind gardenlet, which syncs the Cluster just before it calls.
func (p *pass) readSeed(ctx context.Context) error {
	p.extension = &extensionsv1alpha1.Extension{}
	if err := p.guard.Fresh.Get(ctx, p.key, p.extension); err != nil {
		return err
	}
	var err error
	var seed client.Reader = p.guard.Seed
	if p.lifecycle {
		seed = p.guard.Fresh
	}
	if p.cluster, err = extensions.GetCluster(ctx, seed, p.key.Namespace); err != nil {
		return fmt.Errorf("failed to get the Cluster: %v", err) // not wrapped: a missing Cluster is no missing Extension
	}
	p.readState()
	if !p.lifecycle && p.contradicts() {
		if p.cluster, err = extensions.GetCluster(ctx, p.guard.Fresh, p.key.Namespace); err != nil {
			return fmt.Errorf("failed to get the Cluster: %v", err)
		}
	}
	if p.cluster.Shoot == nil {
		return errors.New("the Cluster holds no Shoot")
	}
	deployment := &appsv1.Deployment{}
	err = seed.Get(ctx, client.ObjectKey{Namespace: p.key.Namespace, Name: v1beta1constants.DeploymentNameKubeAPIServer}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to get the kube-apiserver Deployment: %w", err)
	}
	p.facts.DeploymentFound = err == nil && deployment.DeletionTimestamp == nil
	if p.facts.DeploymentFound {
		p.facts.Replicas = ptr.Deref(deployment.Spec.Replicas, 1)
	}
	p.readConfig()
	p.readShoot()
	return nil
}

// contradicts says whether the cached Cluster is of another direction than the running cycle, which began with gardenlet's
// word: the cache may be behind.
func (p *pass) contradicts() bool {
	return record.MayOpenNew(p.state) && p.cluster.Shoot != nil &&
		helper.HibernationIsEnabled(p.cluster.Shoot) != (p.state.Cycle.Direction == v1alpha1.DirectionHibernate)
}

// readState decodes the record. One that is newer than this binary, or damaged, is restored from but not rewritten.
func (p *pass) readState() {
	state, newer, err := codec.DecodeState(p.extension.Status.State)
	switch {
	case err != nil:
		p.readOnly = err.Error()
	case newer:
		p.readOnly = "the record was written by a newer version"
	}
	p.state, p.stored, p.hadRecord = state, state.DeepCopy(), len(state.Hooks) > 0
	record.ForgetFuture(p.state, p.now)
}

// readConfig decodes the providerConfig. One that cannot be decoded is replaced by the last good one, else by the defaults.
func (p *pass) readConfig() {
	lastGood, err := codec.DecodeConfig(p.state.LastGoodConfig)
	p.config, p.configError = codec.DecodeConfig(p.extension.Spec.ProviderConfig)
	switch {
	case p.configError != nil && err == nil:
		p.config = lastGood
	case p.configError != nil:
		p.config, _ = codec.DecodeConfig(nil)
	case err != nil || !apiequality.Semantic.DeepEqual(lastGood, p.config): // its bytes may differ: etcd keeps no null
		p.state.LastGoodConfig = p.extension.Spec.ProviderConfig.DeepCopy()
	}
}

func (p *pass) readShoot() {
	s := p.cluster.Shoot
	op := s.Status.LastOperation
	p.facts.LastOperationMigrate = op != nil && op.Type == gardencorev1beta1.LastOperationTypeMigrate
	p.facts.OperationAnnotation = p.extension.Annotations[v1beta1constants.GardenerOperation]
	p.facts.ShootDeleting = s.DeletionTimestamp != nil
	p.facts.HibernationEnabled = helper.HibernationIsEnabled(s)
	p.facts.IsHibernated = s.Status.IsHibernated
	p.facts.TransitionCall = p.lifecycle && phase.IsTransitionCall(s, p.extension, p.now)
	p.facts.OnRecord = p.onRecord()
	p.facts.DeadlinePassed = record.DeadlinePassed(p.state, p.config.WakingUp.Deadline.Duration, p.now)
}

// onRecord says whether hooks that still exist are on record, or a cycle is unfinished.
func (p *pass) onRecord() bool {
	return hooksOnRecord(p.state) || record.CycleRuns(p.state)
}

// nothingOnRecord says whether looking at an awake Shoot may wait. A record that cannot be read is not an empty one: what it
// held may be open still.
func (p *pass) nothingOnRecord() bool {
	return !p.facts.OnRecord && len(p.state.Hooks) == 0 && p.readOnly == "" && !p.toldUnknown()
}

// toldUnknown says whether hooks whose originals are lost were told of when the Shoot was seen last. No record tells of them.
func (p *pass) toldUnknown() bool {
	c := helper.GetCondition(p.extension.Status.Conditions, gardencorev1beta1.ShootSystemComponentsHealthy)
	return c != nil && c.Reason == v1alpha1.ReasonOriginalUnknown
}

func hooksOnRecord(s *v1alpha1.GuardState) bool {
	for _, h := range s.Hooks {
		if !h.Gone {
			return true
		}
	}
	return false
}

// see looks at the Shoot.
func (p *pass) see(ctx context.Context) (Outcome, error) {
	if err := p.connect(ctx); err != nil {
		return p.unreachable(ctx, err)
	}
	if p.fellBack {
		defer p.guard.Shoots.Close(p.key.Namespace)
	}
	p.distrust()
	p.phase = phase.Of(p.facts)
	if p.phase != phase.GoingDown && p.phase != phase.WakingUp {
		defer p.guard.Shoots.Close(p.key.Namespace)
	}
	p.beginCycle()
	p.askWhetherSeed(ctx)
	if !p.lifecycle && p.onRecord() && (p.phase == phase.GoingDown || p.phase == phase.WakingUp) {
		if err := p.conn.Watch(ctx); err != nil {
			p.log.Error(err, "Failed to watch the Shoot, reading without a cache")
		}
	}
	if err := p.actInTime(ctx); err != nil {
		return p.outcome(), err
	}
	if p.cares() {
		if err := p.care(ctx); err != nil {
			return p.outcome(), err
		}
	}
	var holdBack error
	if p.phase == phase.GoingDown && p.call() {
		holdBack = p.holdBack(p.mayNotWake())
	}
	err := p.tell(ctx)
	p.tellShoot(ctx)
	if !p.onRecord() {
		p.guard.Shoots.Close(p.key.Namespace)
	}
	out := p.outcome()
	out.HoldBack = holdBack
	return out, err
}

// actInTime acts; in a lifecycle call no longer than leaves time to tell what could not be done.
func (p *pass) actInTime(ctx context.Context) error {
	if !p.lifecycle {
		return p.act(ctx)
	}
	actCtx, cancel := context.WithTimeout(ctx, actPatience-p.guard.Clock.Since(p.now))
	defer cancel()
	if err := p.act(actCtx); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	return nil
}

// distrust tells of annotations that are not what we wrote.
func (p *pass) distrust() {
	for _, c := range p.configurations {
		if _, err := c.Originals(); err != nil {
			p.log.Info("Annotation is not trusted", "kind", c.Kind, "configuration", c.Name, "reason", err.Error())
		}
	}
}

// unreachable is a pass that could not see the Shoot although its API server should run.
func (p *pass) unreachable(ctx context.Context, cause error) (Outcome, error) {
	if ctx.Err() != nil {
		return p.outcome(), ctx.Err()
	}
	p.guard.Shoots.Close(p.key.Namespace) // what was watched until now is no longer how things are
	p.shootError = cause
	var holdBack error
	if p.call() { // as far as the phase goes without the API server
		p.beginCycle()
		if p.phase == phase.GoingDown && !p.settings().Report {
			holdBack = p.holdBack(notReached(cause))
		}
	}
	p.facts.APIAnswers = false
	p.phase = phase.Of(p.facts)
	err := p.tell(ctx)
	out := p.outcome()
	out.HoldBack = holdBack
	if p.onRecord() {
		out.NextCheck = p.memory.backOff()
	} else if !p.lifecycle {
		out.NextCheck = p.nextCare()
	}
	return out, err
}
