// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	shootcontroller "github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/utils/flow"
	"github.com/gardener/gardener/pkg/utils/retry"
)

// delete is the flow for deletion (runDeleteShootFlow), without the tasks that have no counterpart in the bench. The
// control plane of a hibernated Shoot is woken for it.
func (r *gardenletRun) delete(ctx context.Context) error {
	if gone, err := r.namespaceIsGone(ctx); err != nil || gone {
		return err
	}
	replicas, err := r.deploymentReplicas(ctx, v1beta1constants.DeploymentNameKubeAPIServer)
	if err != nil {
		return err
	}
	clean := replicas != nil
	f := r.graph("Shoot cluster deletion")
	connected := r.addWokenControlPlane(f, clean, replicas)
	cleaned := r.addCleanup(f, clean, connected)
	workersGone := f.add("Waiting until shoot worker nodes have been terminated", r.waitWorkers,
		f.add("Destroying shoot workers", r.destroyWorkers, cleaned))
	extensionsGone := r.addExtensionDeletion(f, cleaned, workersGone)
	r.addControlPlaneDeletion(f, extensionsGone)
	if err := f.do(ctx); err != nil {
		return err
	}
	return r.forgetShootClient()
}

// addWokenControlPlane brings the control plane up, if there is any, whether or not the Shoot is hibernated.
func (r *gardenletRun) addWokenControlPlane(f *gardenletGraph, clean bool, replicas *int32) flow.TaskIDer {
	components := r.Shoot.Components
	namespace := f.add("Deploying Shoot namespace in Seed", retried(r.DeployControlPlaneNamespace))
	secrets := f.add("Initializing secrets management", retried(r.layAuthority), namespace)
	deployed := f.addUnless(!clean, StepDeployKubeAPIServer, retried(r.DeployKubeAPIServer), secrets)
	scaled := f.addUnless(!clean || *replicas != 0, "Scaling up Kubernetes API server", retried(r.ScaleKubeAPIServerToOne), deployed)
	ready := f.addUnless(!clean, "Waiting until Kubernetes API server reports readiness", components.ControlPlane.KubeAPIServer.Wait, scaled)
	deployed = f.addUnless(!clean, "Deploying gardener-resource-manager", func(ctx context.Context) error {
		return r.deploy(ctx, v1beta1constants.DeploymentNameGardenerResourceManager, 1)
	}, ready)
	resourceManager := f.addUnless(!clean, "Waiting until gardener-resource-manager reports readiness", r.waitResourceManager, deployed)
	access := f.addUnless(!clean, "Deploying Gardener shoot access resources", retried(components.GardenerAccess.Deploy), secrets, resourceManager)
	connected := f.addUnless(!clean, StepConnectToShoot,
		flow.TaskFn(r.InitializeDesiredShootClients).RetryUntilTimeout(gardenletInterval, 2*time.Minute), access)
	deployed = f.addUnless(!clean, StepDeployControllerManager, retried(r.DeployKubeControllerManager), connected)
	f.addUnless(!clean, "Scaling up Kubernetes controller manager", r.ScaleKubeControllerManagerToOne, deployed)
	return flow.NewTaskIDs(connected, deployed)
}

// addCleanup removes webhooks first, then what users have in the Shoot.
func (r *gardenletRun) addCleanup(f *gardenletGraph, clean bool, after flow.TaskIDer) flow.TaskIDer {
	skipped := metav1.HasAnnotation(r.Shoot.GetInfo().ObjectMeta, v1beta1constants.AnnotationShootSkipCleanup)
	webhooks := f.addUnless(!clean, StepCleanWebhooks, flow.TaskFn(r.CleanWebhooks).Timeout(10*time.Minute), after)
	active := f.addUnless(!clean, "Waiting until kube-controller-manager is active", retried(r.WaitForKubeControllerManagerToBeActive), webhooks)
	extended := f.addUnless(!clean || skipped, "Cleaning extended API groups", flow.TaskFn(r.CleanExtendedAPIs).Timeout(10*time.Minute), active)
	return f.addUnless(!clean, "Cleaning Kubernetes resources", flow.TaskFn(r.CleanKubernetesResources).Timeout(10*time.Minute), extended)
}

// addExtensionDeletion deletes and awaits the extensions whose lifecycle says BeforeKubeAPIServer, and the stale ones.
func (r *gardenletRun) addExtensionDeletion(f *gardenletGraph, cleaned, workersGone flow.TaskIDer) flow.TaskIDer {
	extension := r.Shoot.Components.Extensions.Extension
	resources := f.add("Deleting managed resources", retried(r.DeleteManagedResources), cleaned, workersGone)
	resources = f.add("Waiting until managed resources have been deleted", flow.TaskFn(r.WaitUntilManagedResourcesDeleted).Timeout(10*time.Minute), resources)
	deleted := f.add(StepDestroyExtension, retried(extension.DestroyBeforeKubeAPIServer), resources)
	deleted = f.add("Waiting until extension resources that should be handled before kube-apiserver have been deleted",
		extension.WaitCleanupBeforeKubeAPIServer, deleted)
	stale := f.add(StepDeleteStaleExtensions, retried(extension.DeleteStaleResources), resources)
	stale = f.add("Waiting until all stale extension resources have been deleted", extension.WaitCleanupStaleResources, stale)
	return flow.NewTaskIDs(deleted, stale)
}

func (r *gardenletRun) addControlPlaneDeletion(f *gardenletGraph, after flow.TaskIDer) {
	extension, server := r.Shoot.Components.Extensions.Extension, r.Shoot.Components.ControlPlane.KubeAPIServer
	resources := f.add("Waiting until shoot managed resources have been deleted", retried(r.WaitUntilShootManagedResourcesDeleted), after)
	deleted := f.add("Deleting Kubernetes API server", retried(r.DeleteKubeAPIServer), resources)
	deleted = f.add("Waiting until Kubernetes API server has been deleted", server.WaitCleanup, deleted)
	extensions := f.add("Deleting extension resources after kube-apiserver", retried(extension.DestroyAfterKubeAPIServer), deleted)
	extensions = f.add("Waiting until extension resources that should be handled after kube-apiserver have been deleted",
		extension.WaitCleanupAfterKubeAPIServer, extensions)
	all := f.add("Waiting until all extension resources have been deleted", extension.WaitCleanup, deleted)
	manager := f.add("Destroying gardener-resource-manager", func(ctx context.Context) error {
		return r.destroy(ctx, v1beta1constants.DeploymentNameGardenerResourceManager)
	}, deleted)
	r.addNamespaceDeletion(f, "Deleting shoot namespace in Seed", "Waiting until shoot namespace in Seed has been deleted", extensions, all, manager)
}

func (r *gardenletRun) addNamespaceDeletion(f *gardenletGraph, deleteName, waitName string, after ...flow.TaskIDer) {
	f.add(waitName, r.WaitUntilSeedNamespaceDeleted, f.add(deleteName, retried(r.DeleteSeedNamespace), after...))
}

// forceDelete is the flow for forceful deletion (runForceDeleteShootFlow): the Shoot's API server is not asked.
func (r *gardenletRun) forceDelete(ctx context.Context) error {
	if gone, err := r.namespaceIsGone(ctx); err != nil || gone {
		return err
	}
	cleaner := shootcontroller.NewCleaner(r.Logger, ignoreNoMatch(r.SeedClientSet.Client()), r.GardenClient, r.Shoot.ControlPlaneNamespace)
	f := r.graph("Shoot cluster force deletion")
	deleted := f.add("Deleting extension resources", retried(cleaner.DeleteExtensionObjects))
	deleted = f.add("Waiting until extension resources have been deleted", cleaner.WaitUntilExtensionObjectsDeleted, deleted)
	resources := f.add("Configuring managed resources to not keep their objects when deleted", retried(cleaner.SetKeepObjectsForManagedResources), deleted)
	resources = f.add("Deleting managed resources", retried(cleaner.DeleteManagedResources), resources)
	resources = f.add("Waiting until managed resources have been deleted", cleaner.WaitUntilManagedResourcesDeleted, resources)
	cluster := f.add("Deleting Cluster resource", retried(cleaner.DeleteCluster), deleted, resources)
	objects := f.add("Deleting Kubernetes resources", retried(cleaner.DeleteKubernetesResources), cluster)
	r.addNamespaceDeletion(f, "Deleting shoot namespace", "Waiting until shoot namespace has been deleted", objects)
	return f.do(ctx)
}

// namespaceIsGone says whether an earlier flow already deleted everything. A terminating namespace is waited for.
func (r *gardenletRun) namespaceIsGone(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := r.SeedClientSet.Client().Get(ctx, client.ObjectKey{Name: r.Shoot.ControlPlaneNamespace}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil || namespace.DeletionTimestamp == nil {
		return false, err
	}
	return true, retry.UntilTimeout(ctx, time.Second, 5*time.Minute, func(ctx context.Context) (bool, error) {
		err := r.SeedClientSet.Client().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (r *gardenletRun) destroyWorkers(context.Context) error {
	r.gardenlet.workers.scale(0)
	return nil
}
