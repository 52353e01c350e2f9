// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/flow"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
)

// The steps of ForceSleep.
const (
	forceFlow              = "Shoot cluster hibernation by force"
	StepLoseMachines       = "Losing all machines"
	StepForceObjects       = "Deleting Node and Pod objects by force"
	StepForceControlPlane  = "Scaling control plane to zero by hand"
	forceObjectsTimeout    = 30 * time.Second
	forceControlPlaneLimit = 2 * time.Minute
)

// ForceSleep does what an operator does when hibernation hangs, and tells each step: it takes the machines away,
// deletes Nodes and Pods without grace as far as the API server lets it (the errors are told, but stop nothing), scales
// the control plane to zero by hand, and lets gardenlet reconcile, who then finds nothing left to wait for. A running
// flow is waited for, so the context of a Hibernate that hangs should be ended first.
func (g *Gardenlet) ForceSleep(ctx context.Context) error {
	g.Edit(func(shoot *gardencorev1beta1.Shoot) { setHibernation(shoot, true) })
	if err := g.forceDown(ctx); err != nil {
		return err
	}
	return g.untilDone(ctx, g.Reconcile)
}

func (g *Gardenlet) forceDown(ctx context.Context) error {
	g.flows.Lock()
	defer g.flows.Unlock()
	if err := g.connect(ctx); err != nil {
		return err
	}
	if err := g.tellStep(forceFlow, StepLoseMachines, func() error { g.workers.abandon(); return nil }); err != nil {
		return err
	}
	if err := g.tellStep(forceFlow, StepForceObjects, func() error { return g.forceObjects(ctx) }); err != nil {
		g.log.Error(err, "Some objects stay")
	}
	return g.tellStep(forceFlow, StepForceControlPlane, func() error { return g.forceControlPlane(ctx) })
}

// forceObjects deletes all Nodes, then all Pods.
func (g *Gardenlet) forceObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forceObjectsTimeout)
	defer cancel()
	admin := g.bench.Shoot.Client()
	var failed []error
	for _, list := range []client.ObjectList{&corev1.NodeList{}, &corev1.PodList{}} {
		if err := admin.List(ctx, list); err != nil {
			return fmt.Errorf("failed to list: %w", err)
		}
		var deletions []flow.TaskFn
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			deletions = append(deletions, func(ctx context.Context) error {
				return errors.Join(
					client.IgnoreNotFound(admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))),
					client.IgnoreNotFound(admin.Delete(ctx, object, client.GracePeriodSeconds(0))))
			})
			return nil
		}); err != nil {
			return err
		}
		failed = append(failed, flow.Parallel(deletions...)(ctx))
	}
	return errors.Join(failed...)
}

func (g *Gardenlet) forceControlPlane(ctx context.Context) error {
	for _, name := range []string{
		v1beta1constants.DeploymentNameGardenerResourceManager, v1beta1constants.DeploymentNameKubeControllerManager,
		v1beta1constants.DeploymentNameKubeScheduler, v1beta1constants.DeploymentNameKubeAPIServer,
	} {
		if err := kubernetesutils.ScaleDeployment(ctx, g.seed.Client(), client.ObjectKey{Namespace: g.bench.Namespace, Name: name}, 0); err != nil {
			return fmt.Errorf("failed to scale %s: %w", name, err)
		}
	}
	return eventually(ctx, forceControlPlaneLimit, func(context.Context) error {
		if g.bench.Shoot.Running() {
			return errors.New("the API server still runs")
		}
		return nil
	})
}
