// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot/helper"
	"github.com/gardener/gardener/pkg/utils/flow"
)

// shootRetryDuration is gardenlet's default: after it a failing Shoot becomes Failed.
const shootRetryDuration = 12 * time.Hour

func nowSeconds() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// Reconcile is one run of gardenlet's shoot controller: what it does follows from the Shoot in the garden, as in
// gardenlet: creation, reconcile, hibernation, wake-up, restoration, migration, deletion; for a Shoot that is ignored
// or Failed only the Cluster is synced. It returns the flow's own error.
func (g *Gardenlet) Reconcile(ctx context.Context) error {
	g.flows.Lock()
	defer g.flows.Unlock()
	if err := g.connect(ctx); err != nil {
		return err
	}
	shoot := g.Shoot()
	if shoot == nil {
		return errors.New("failed to reconcile: the Shoot is gone")
	}
	infos := helper.CalculateControllerInfos(newSeed(*shoot.Spec.SeedName), shoot, clock.RealClock{}, gardenletconfigv1alpha1.ShootControllerConfiguration{
		SyncPeriod: &metav1.Duration{Duration: time.Hour}, RespectSyncPeriodOverwrite: new(true),
	})
	if !infos.ShouldReconcileNow.Result {
		if infos.ShouldOnlySyncClusterResource {
			return g.syncCluster(ctx)
		}
		return nil
	}
	operation := infos.OperationType
	if err := g.begun(ctx, operation); err != nil {
		return err
	}
	if err := g.runFlow(ctx, operation); err != nil {
		if errors.Is(err, ErrStopped) {
			return err
		}
		// The status is written even if ctx has ended.
		return errors.Join(err, g.failed(context.WithoutCancel(ctx), operation, err))
	}
	return g.finish(ctx, operation)
}

// SyncCluster only brings the Cluster on the seed up to date, as gardenlet does for a Shoot that is ignored or Failed.
func (g *Gardenlet) SyncCluster(ctx context.Context) error {
	g.flows.Lock()
	defer g.flows.Unlock()
	if err := g.connect(ctx); err != nil {
		return err
	}
	return g.syncCluster(ctx)
}

func (g *Gardenlet) syncCluster(ctx context.Context) error {
	return g.tellStep("Shoot cluster reconciliation", StepSyncCluster, func() error {
		shoot := g.Shoot()
		return extensions.SyncClusterResourceToSeed(ctx, g.seed.Client(), g.bench.Namespace, shoot, newCloudProfile(), newSeed(*shoot.Spec.SeedName))
	})
}

// runFlow syncs the Cluster and runs the flow of this operation.
func (g *Gardenlet) runFlow(ctx context.Context, operation gardencorev1beta1.LastOperationType) error {
	if err := g.syncCluster(ctx); err != nil {
		return err
	}
	run, err := g.newRun(ctx, operation)
	if err != nil {
		return err
	}
	switch {
	case operation == gardencorev1beta1.LastOperationTypeMigrate:
		return run.migrate(ctx)
	case operation == gardencorev1beta1.LastOperationTypeDelete && v1beta1helper.ShootNeedsForceDeletion(g.Shoot()):
		return run.forceDelete(ctx)
	case operation == gardencorev1beta1.LastOperationTypeDelete:
		return run.delete(ctx)
	default:
		return run.reconcile(ctx)
	}
}

// finish writes the status after a flow and syncs, or deletes, the Cluster.
func (g *Gardenlet) finish(ctx context.Context, operation gardencorev1beta1.LastOperationType) error {
	switch operation {
	case gardencorev1beta1.LastOperationTypeMigrate:
		if err := g.deleteCluster(ctx); err != nil {
			return err
		}
		return g.succeeded(ctx, operation, false)
	case gardencorev1beta1.LastOperationTypeDelete:
		if err := g.deleteCluster(ctx); err != nil {
			return err
		}
		g.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Finalizers = nil })
		return nil
	}
	// The Cluster holds the spec of this flow; the garden's may be newer.
	cluster, err := extensions.GetCluster(ctx, g.seed.Client(), g.bench.Namespace)
	if err != nil {
		return fmt.Errorf("failed to get Cluster: %w", err)
	}
	if err := g.succeeded(ctx, operation, v1beta1helper.HibernationIsEnabled(cluster.Shoot)); err != nil {
		return err
	}
	g.Edit(func(shoot *gardencorev1beta1.Shoot) {
		delete(shoot.Annotations, v1beta1constants.AnnotationShootSkipReadiness)
	})
	return g.syncCluster(ctx)
}

// reconcile is the flow for creation, reconcile, hibernation, wake-up and restoration
// (setupReconcileHostedShootFlow), without the tasks that have no counterpart in the bench.
func (r *gardenletRun) reconcile(ctx context.Context) error {
	name := "Shoot cluster reconciliation"
	if r.operation == gardencorev1beta1.LastOperationTypeRestore {
		name = "Shoot cluster restoration"
	}
	f := r.graph(name)
	connected := r.addControlPlane(f)
	extensionReady := r.addExtension(f, connected)
	workersReady := r.addWorkers(f, extensionReady)
	hibernated := f.addUnless(!r.Shoot.HibernationEnabled, StepHibernateControlPlane,
		flow.TaskFn(r.HibernateControlPlane).RetryUntilTimeout(gardenletInterval, 2*time.Minute),
		connected, extensionReady, workersReady)
	// Gardener inverts the logic here: what is deployed before kube-apiserver is hibernated after it.
	deployed := f.addUnless(!r.Shoot.HibernationEnabled, "Hibernating extension resources after kube-apiserver hibernation",
		retried(r.DeployExtensionsBeforeKubeAPIServer), hibernated)
	f.addUnless(!r.Shoot.HibernationEnabled || r.skipReadiness(), "Waiting until extension resources hibernated after kube-apiserver hibernation are ready",
		r.Shoot.Components.Extensions.Extension.WaitBeforeKubeAPIServer, deployed)
	if err := f.do(ctx); err != nil {
		return err
	}
	if r.Shoot.HibernationEnabled {
		return r.forgetShootClient()
	}
	return nil
}

// addControlPlane ends with a connection to the Shoot, or with none if it sleeps.
func (r *gardenletRun) addControlPlane(f *gardenletGraph) flow.TaskIDer {
	components := r.Shoot.Components
	hibernate := r.Shoot.HibernationEnabled
	namespace := f.add("Deploying control plane namespace", r.DeployControlPlaneNamespace)
	secrets := f.add("Initializing secrets management", r.layAuthority, namespace)
	deployed := f.addUnless(hibernate, "Deploying extension resources before kube-apiserver",
		retried(r.DeployExtensionsBeforeKubeAPIServer), secrets)
	ready := f.addUnless(hibernate || r.skipReadiness(), "Waiting until extension resources handled before kube-apiserver are ready",
		components.Extensions.Extension.WaitBeforeKubeAPIServer, deployed)
	deployed = f.add(StepDeployKubeAPIServer, retried(r.DeployKubeAPIServer), secrets, ready)
	ready = f.addUnless(hibernate || r.skipReadiness(), StepWaitKubeAPIServer, components.ControlPlane.KubeAPIServer.Wait, deployed)
	deployed = f.add("Deploying gardener-resource-manager", r.deployResourceManager, ready)
	resourceManager := f.addUnless(hibernate || r.skipReadiness(), "Waiting until gardener-resource-manager reports readiness",
		r.waitResourceManager, deployed)
	f.add("Deploying Kubernetes scheduler", retried(components.ControlPlane.KubeScheduler.Deploy), resourceManager)
	f.add(StepDeployControllerManager, retried(r.DeployKubeControllerManager), resourceManager)
	access := f.add("Deploying Gardener shoot access resources", retried(components.GardenerAccess.Deploy), secrets, resourceManager)
	connected := f.add(StepConnectToShoot,
		flow.TaskFn(r.InitializeDesiredShootClients).RetryUntilTimeout(gardenletInterval, 2*time.Minute), access)

	stale := f.add(StepDeleteStaleExtensions, retried(components.Extensions.Extension.DeleteStaleResources), connected)
	f.addUnless(hibernate || r.skipReadiness(), "Waiting until stale extension resources are deleted",
		components.Extensions.Extension.WaitCleanupStaleResources, stale)
	return connected
}

// addExtension ends when the extensions after kube-apiserver are ready.
func (r *gardenletRun) addExtension(f *gardenletGraph, connected flow.TaskIDer) flow.TaskIDer {
	deployName, waitName := StepDeployExtension, StepWaitExtension
	if r.Shoot.HibernationEnabled {
		deployName, waitName = StepHibernateExtension, StepWaitHibernatedExtension
	}
	deployed := f.add(deployName, retried(r.DeployExtensionsAfterKubeAPIServer), connected)
	return f.addUnless(r.skipReadiness(), waitName, r.Shoot.Components.Extensions.Extension.WaitAfterKubeAPIServer, deployed)
}

// addWorkers ends when the worker pools have the machines they should have, and the tunnel is up.
func (r *gardenletRun) addWorkers(f *gardenletGraph, after flow.TaskIDer) flow.TaskIDer {
	extension := r.Shoot.Components.Extensions.Extension
	deployed := f.add(StepDeployWorkers, r.deployWorkers, after)
	afterWorker := f.add("Deploying extension resources after workers", r.DeployExtensionsAfterWorker, deployed)
	afterWorker = f.addUnless(r.skipReadiness(), "Waiting until extension resources handled after workers are ready",
		extension.WaitAfterWorker, afterWorker)
	ready := f.addUnless(r.skipReadiness(), StepWaitWorkers, r.waitWorkers, deployed)
	f.addUnless(r.Shoot.HibernationEnabled || r.skipReadiness(), StepWaitTunnel, r.waitTunnel, ready)
	return flow.NewTaskIDs(ready, afterWorker)
}

func (r *gardenletRun) skipReadiness() bool {
	return metav1.HasAnnotation(r.Shoot.GetInfo().ObjectMeta, v1beta1constants.AnnotationShootSkipReadiness)
}
