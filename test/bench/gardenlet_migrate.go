// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/flow"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
)

// migrate is the flow that prepares for another seed (runMigrateShootFlow), without the tasks that have no counterpart
// in the bench. A hibernated control plane is woken for it; the data and the machines stay.
func (r *gardenletRun) migrate(ctx context.Context) error {
	if gone, err := r.namespaceIsGone(ctx); err != nil || gone {
		return err
	}
	replicas, err := r.deploymentReplicas(ctx, v1beta1constants.DeploymentNameKubeAPIServer)
	if err != nil {
		return err
	}
	clean := replicas != nil
	wake := clean && (r.Shoot.GetInfo().Status.IsHibernated || r.Shoot.HibernationEnabled)
	// The time-out of most tasks of this flow.
	long := func(fn flow.TaskFn) flow.TaskFn { return fn.RetryUntilTimeout(gardenletInterval, 10*time.Minute) }

	f := r.graph("Shoot cluster preparation for migration")
	namespace := f.add("Deploying Shoot namespace in Seed", long(r.DeployControlPlaneNamespace))
	secrets := f.add("Initializing secrets management", long(r.layAuthority), namespace)
	woken := f.addUnless(!wake, "Scaling Kubernetes API Server up and waiting until ready", r.WakeUpKubeAPIServer, secrets)
	manager := f.addUnless(!clean, "Deploying gardener-resource-manager", r.deployResourceManager, woken)
	manager = f.addUnless(!clean, "Ensuring that the gardener-resource-manager is scaled to 1", r.ScaleGardenerResourceManagerToOne, manager)
	kept := f.addUnless(!clean, "Configuring Managed Resources objects to be kept in the Shoot", r.KeepObjectsForManagedResources, manager)
	resources := f.add("Deleting all Managed Resources from the Shoot's namespace", r.DeleteManagedResources, kept)
	resources = f.add("Waiting until ManagedResources are deleted", flow.TaskFn(r.WaitUntilManagedResourcesDeleted).Timeout(10*time.Minute), resources)
	before := r.addMigrationBeforeKubeAPIServer(f, resources)
	shootResources := f.addUnless(!clean, "Waiting until shoot managed resources have been deleted",
		retried(r.WaitUntilShootManagedResourcesDeleted), before)
	deleted := f.add("Deleting kube-apiserver deployment", long(r.DeleteKubeAPIServer), resources, shootResources)
	deleted = f.add("Waiting until kube-apiserver has been deleted", r.Shoot.Components.ControlPlane.KubeAPIServer.WaitCleanup, deleted)
	after := r.addMigrationAfterKubeAPIServer(f, deleted)
	r.addNamespaceDeletion(f, "Deleting shoot namespace in Seed", "Waiting until shoot namespace in Seed has been deleted", after)
	if err := f.do(ctx); err != nil {
		return err
	}
	return r.forgetShootClient()
}

// addMigrationBeforeKubeAPIServer migrates, then deletes the extensions whose lifecycle says so. As in gardenlet, the
// ShootState is not written after them but beside them: it waits for other kinds of extension objects only.
func (r *gardenletRun) addMigrationBeforeKubeAPIServer(f *gardenletGraph, after flow.TaskIDer) flow.TaskIDer {
	extension := r.Shoot.Components.Extensions.Extension
	migrated := f.add(StepMigrateExtension, extension.MigrateBeforeKubeAPIServer, after)
	migrated = f.add("Waiting until extensions that should be handled before kube-apiserver have been migrated", extension.WaitMigrateBeforeKubeAPIServer, migrated)
	persisted := f.add(StepPersistShootState, r.persistShootState, after)
	deleted := f.add("Deleting extensions before kube-apiserver", extension.DestroyBeforeKubeAPIServer, migrated, persisted)
	deleted = f.add("Waiting until extensions that should be handled before kube-apiserver have been deleted", extension.WaitCleanupBeforeKubeAPIServer, deleted)
	stale := f.add("Deleting stale extensions", extension.DeleteStaleResources, after)
	stale = f.add("Waiting until all stale extensions have been deleted", extension.WaitCleanupStaleResources, stale)
	return flow.NewTaskIDs(deleted, stale)
}

func (r *gardenletRun) addMigrationAfterKubeAPIServer(f *gardenletGraph, after flow.TaskIDer) flow.TaskIDer {
	extension := r.Shoot.Components.Extensions.Extension
	migrated := f.add("Migrating extensions after kube-apiserver", extension.MigrateAfterKubeAPIServer, after)
	migrated = f.add("Waiting until extensions that should be handled after kube-apiserver have been migrated", extension.WaitMigrateAfterKubeAPIServer, migrated)
	deleted := f.add("Deleting extensions after kube-apiserver", extension.DestroyAfterKubeAPIServer, migrated)
	deleted = f.add("Waiting until extensions that should be handled after kube-apiserver have been deleted", extension.WaitCleanupAfterKubeAPIServer, deleted)
	all := f.add("Waiting until all extensions have been deleted", extension.WaitCleanup, migrated)
	return flow.NewTaskIDs(deleted, all)
}

func (r *gardenletRun) persistShootState(ctx context.Context) error {
	return shootstate.Deploy(ctx, r.Clock, r.GardenClient, ignoreNoMatch(r.SeedClientSet.Client()), r.Shoot.GetInfo(), r.Shoot.ControlPlaneNamespace, false)
}

// ignoreNoMatch lists nothing of kinds whose CRDs the bench's seed does not have.
func ignoreNoMatch(c client.Client) client.Client {
	return &noMatchIgnorer{Client: c}
}

type noMatchIgnorer struct{ client.Client }

func (c *noMatchIgnorer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Client.List(ctx, list, opts...); !meta.IsNoMatchError(err) {
		return err
	}
	return nil
}
