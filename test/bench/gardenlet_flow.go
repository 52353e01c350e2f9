// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/version"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	botanistpkg "github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/utils/flow"
	"github.com/gardener/gardener/pkg/utils/retry"
)

// The names of the steps that tests fail or stop at. They are gardenlet's own names of its tasks, but for the first.
const (
	StepSyncCluster             = "Syncing Cluster resource to seed"
	StepDeployKubeAPIServer     = "Deploying Kubernetes API server"
	StepWaitKubeAPIServer       = "Waiting until Kubernetes API server rolled out"
	StepConnectToShoot          = "Initializing connection to Shoot"
	StepDeployControllerManager = "Deploying Kubernetes controller manager"
	StepDeployExtension         = "Deploying extension resources after kube-apiserver"
	StepWaitExtension           = "Waiting until extension resources handled after kube-apiserver are ready"
	StepHibernateExtension      = "Hibernating extension resources before kube-apiserver hibernation"
	StepWaitHibernatedExtension = "Waiting until extension resources hibernated before kube-apiserver hibernation are ready"
	StepDeleteStaleExtensions   = "Deleting stale extension resources"
	StepDeployWorkers           = "Configuring worker pools"
	StepWaitWorkers             = "Waiting until worker pools have been reconciled"
	StepWaitTunnel              = "Waiting until the Kubernetes API server can connect to the Shoot workers"
	StepHibernateControlPlane   = "Hibernating control plane"
	StepCleanWebhooks           = "Cleaning up webhooks"
	StepDestroyExtension        = "Deleting extension resources before kube-apiserver"
	StepMigrateExtension        = "Migrating extensions before kube-apiserver"
	StepPersistShootState       = "Persisting ShootState in garden cluster"
)

// Interval and time-out of most tasks of gardenlet (reconciler_reconcile.go of v1.149.3).
const (
	gardenletInterval = 5 * time.Second
	gardenletTimeout  = 30 * time.Second
)

// gardenletRun is one run of a flow.
type gardenletRun struct {
	*botanistpkg.Botanist
	gardenlet *Gardenlet
	operation gardencorev1beta1.LastOperationType
	cancel    context.CancelCauseFunc
}

// gardenletGraph collects the tasks of a flow.
type gardenletGraph struct {
	*flow.Graph
	run  *gardenletRun
	done sets.Set[string] // names of steps that will be done
}

func (r *gardenletRun) graph(name string) *gardenletGraph {
	return &gardenletGraph{Graph: flow.NewGraph(name), run: r, done: sets.New[string]()}
}

// add adds a step that is done once, when all it depends on is done.
func (f *gardenletGraph) add(name string, fn flow.TaskFn, after ...flow.TaskIDer) flow.TaskID {
	return f.addUnless(false, name, fn, after...)
}

// addUnless is add for a step that may be skipped; steps that depend on a skipped one are done all the same.
func (f *gardenletGraph) addUnless(skip bool, name string, fn flow.TaskFn, after ...flow.TaskIDer) flow.TaskID {
	if !skip {
		f.done.Insert(name)
	}
	return f.Add(flow.Task{Name: name, SkipIf: skip, Dependencies: flow.NewTaskIDs(after...), Fn: f.run.step(f.Name(), name, fn)})
}

// retried makes a step try again for as long as gardenlet does for most of its tasks.
func retried(fn flow.TaskFn) flow.TaskFn {
	return fn.RetryUntilTimeout(gardenletInterval, gardenletTimeout)
}

// do runs the steps. The error is Gardener's own.
func (f *gardenletGraph) do(ctx context.Context) error {
	if err := f.run.gardenlet.checkInterruptions(f.Name(), f.done); err != nil {
		return err
	}
	ctx, f.run.cancel = context.WithCancelCause(ctx)
	defer f.run.cancel(nil)
	err := f.Compile().Run(ctx, flow.Opts{
		Log:              f.run.Logger,
		ProgressReporter: flow.NewImmediateProgressReporter(f.run.ReportShootProgress),
	})
	if errors.Is(context.Cause(ctx), ErrStopped) {
		return context.Cause(ctx)
	}
	return err
}

// step makes a task that is told to OnStep and can be interrupted.
func (r *gardenletRun) step(flowName, name string, fn flow.TaskFn) flow.TaskFn {
	return func(ctx context.Context) error {
		err := r.gardenlet.tellStep(flowName, name, func() error { return fn(ctx) })
		if errors.Is(err, ErrStopped) {
			r.cancel(err)
		}
		return err
	}
}

// tellStep does a step, unless it is to fail, and tells OnStep.
func (g *Gardenlet) tellStep(flowName, name string, do func() error) error {
	step := Step{Flow: flowName, Name: name, Begun: time.Now()}
	g.tell(step)
	err := g.takeFailure(name)
	if err == nil {
		err = do()
	}
	step.Ended, step.Err = time.Now(), err
	g.tell(step)
	if err == nil {
		err = g.takeStop(name)
	}
	return err
}

func (g *Gardenlet) tell(step Step) {
	if g.options.OnStep == nil {
		return
	}
	g.telling.Lock()
	defer g.telling.Unlock()
	g.options.OnStep(step)
}

func (g *Gardenlet) takeFailure(step string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failAt != step {
		return nil
	}
	g.failAt = ""
	return fmt.Errorf("step %q was made to fail", step)
}

func (g *Gardenlet) takeStop(step string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopAfter != step {
		return nil
	}
	g.stopAfter = ""
	return fmt.Errorf("%w after step %q", ErrStopped, step)
}

// checkInterruptions makes sure that FailAt and StopAfter will come true.
func (g *Gardenlet) checkInterruptions(flowName string, steps sets.Set[string]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range []string{g.failAt, g.stopAfter} {
		if name != "" && !steps.Has(name) {
			return fmt.Errorf("flow %q has no step %q to fail or stop at, or skips it", flowName, name)
		}
	}
	return nil
}

// begun writes the Shoot's status as gardenlet does before it begins (updateShootStatusOperationStart).
func (g *Gardenlet) begun(ctx context.Context, operation gardencorev1beta1.LastOperationType) error {
	description := map[gardencorev1beta1.LastOperationType]string{
		gardencorev1beta1.LastOperationTypeCreate:    "Reconciliation of Shoot cluster initialized.",
		gardencorev1beta1.LastOperationTypeReconcile: "Reconciliation of Shoot cluster initialized.",
		gardencorev1beta1.LastOperationTypeRestore:   "Restoration of Shoot cluster initialized.",
		gardencorev1beta1.LastOperationTypeMigrate:   "Preparation of Shoot cluster for migration initialized.",
		gardencorev1beta1.LastOperationTypeDelete:    "Deletion of Shoot cluster in progress.",
	}[operation]
	return g.updateStatus(ctx, func(shoot *gardencorev1beta1.Shoot) {
		now := nowSeconds()
		s := &shoot.Status
		if s.RetryCycleStartTime == nil || s.ObservedGeneration != shoot.Generation {
			s.RetryCycleStartTime = &now
		}
		if operation != gardencorev1beta1.LastOperationTypeMigrate && operation != gardencorev1beta1.LastOperationTypeDelete {
			s.SeedName = shoot.Spec.SeedName
		}
		s.UID = shoot.UID
		s.Gardener = gardencorev1beta1.Gardener{ID: "bench", Name: "gardenlet", Version: version.Get().GitVersion}
		s.ObservedGeneration = shoot.Generation
		s.LastOperation = &gardencorev1beta1.LastOperation{
			Type: operation, State: gardencorev1beta1.LastOperationStateProcessing, Description: description, LastUpdateTime: now,
		}
	})
}

// failed writes the Shoot's status as gardenlet does after a failed flow (patchShootStatusOperationError).
func (g *Gardenlet) failed(ctx context.Context, operation gardencorev1beta1.LastOperationType, cause error) error {
	wrapped := v1beta1helper.NewWrappedLastErrors(v1beta1helper.FormatLastErrDescription(cause), cause)
	return g.updateStatus(ctx, func(shoot *gardencorev1beta1.Shoot) {
		state, description := gardencorev1beta1.LastOperationStateError, wrapped.Description+" Operation will be retried."
		started := shoot.Status.RetryCycleStartTime
		if v1beta1helper.HasNonRetryableErrorCode(wrapped.LastErrors...) || started != nil && time.Since(started.Time) > shootRetryDuration {
			state, description = gardencorev1beta1.LastOperationStateFailed, wrapped.Description
			shoot.Status.RetryCycleStartTime = nil
		}
		shoot.Status.LastErrors = wrapped.LastErrors
		last := shoot.Status.LastOperation
		last.Type, last.State, last.Description, last.LastUpdateTime = operation, state, description, nowSeconds()
	})
}

// succeeded writes the Shoot's status as gardenlet does after a flow (patchShootStatusOperationSuccess).
func (g *Gardenlet) succeeded(ctx context.Context, operation gardencorev1beta1.LastOperationType, hibernated bool) error {
	description := map[gardencorev1beta1.LastOperationType]string{
		gardencorev1beta1.LastOperationTypeCreate:    "Shoot cluster has been successfully reconciled.",
		gardencorev1beta1.LastOperationTypeReconcile: "Shoot cluster has been successfully reconciled.",
		gardencorev1beta1.LastOperationTypeMigrate:   "Shoot cluster has been successfully prepared for migration.",
		gardencorev1beta1.LastOperationTypeRestore:   "Shoot cluster has been successfully restored.",
		gardencorev1beta1.LastOperationTypeDelete:    "Shoot cluster has been successfully deleted.",
	}[operation]
	return g.updateStatus(ctx, func(shoot *gardencorev1beta1.Shoot) {
		s := &shoot.Status
		s.IsHibernated = hibernated
		if operation != gardencorev1beta1.LastOperationTypeDelete {
			s.SeedName = shoot.Spec.SeedName
		}
		s.RetryCycleStartTime, s.LastErrors = nil, nil
		s.LastOperation = &gardencorev1beta1.LastOperation{
			Type: operation, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
			Description: description, LastUpdateTime: nowSeconds(),
		}
	})
}

// eventually polls every 250 ms, for what Gardener leaves to other components and their own polling.
func eventually(ctx context.Context, timeout time.Duration, check func(ctx context.Context) error) error {
	return retry.UntilTimeout(ctx, 250*time.Millisecond, timeout, func(ctx context.Context) (bool, error) {
		if err := check(ctx); err != nil {
			return retry.MinorError(err)
		}
		return retry.Ok()
	})
}
