// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/component/etcd/etcd"
	"github.com/gardener/gardener/pkg/component/gardener/access"
	kubeapiserver "github.com/gardener/gardener/pkg/component/kubernetes/apiserver"
	kubecontrollermanager "github.com/gardener/gardener/pkg/component/kubernetes/controllermanager"
	"github.com/gardener/gardener/pkg/controllerutils"
	shootpkg "github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
)

// gardenletLabels are the labels of the control plane's pods, by Deployment, as Gardener sets them.
var gardenletLabels = map[string]map[string]string{
	v1beta1constants.DeploymentNameKubeAPIServer: {
		v1beta1constants.LabelApp: v1beta1constants.LabelKubernetes, v1beta1constants.LabelRole: v1beta1constants.LabelAPIServer},
	v1beta1constants.DeploymentNameKubeControllerManager: {
		v1beta1constants.LabelApp: v1beta1constants.LabelKubernetes, v1beta1constants.LabelRole: v1beta1constants.LabelControllerManager},
	v1beta1constants.DeploymentNameKubeScheduler: {
		v1beta1constants.LabelApp: v1beta1constants.LabelKubernetes, v1beta1constants.LabelRole: v1beta1constants.LabelScheduler},
	v1beta1constants.DeploymentNameGardenerResourceManager: {
		v1beta1constants.LabelApp: v1beta1constants.DeploymentNameGardenerResourceManager},
}

// addComponents gives Gardener's code the components its flows call. Their decisions are Gardener's; of the control
// plane's Deployments only what matters here is written: replicas, labels, a container.
func (r *gardenletRun) addComponents(ctx context.Context) error {
	namespace := r.Shoot.ControlPlaneNamespace
	r.Shoot.Components = &shootpkg.Components{
		GardenerAccess: access.New(r.SeedClientSet.Client(), namespace, r.SecretsManager, access.Values{
			ServerInCluster: r.host(), ServerOutOfCluster: r.host(),
		}),
		ControlPlane: &shootpkg.ControlPlane{
			KubeAPIServerService: gardenletNothing{}, KubeAPIServerSNI: gardenletNothing{},
			EtcdMain: gardenletEtcd{}, EtcdEvents: gardenletEtcd{},
			KubeAPIServer: &gardenletAPIServer{r: r, Interface: kubeapiserver.New(r.SeedClientSet, namespace, r.SecretsManager,
				// Gardener has at least two replicas; after a wake-up it begins with one.
				kubeapiserver.Values{Autoscaling: kubeapiserver.AutoscalingConfig{MinReplicas: 1}})},
			KubeControllerManager: &gardenletControllerManager{r: r, Interface: kubecontrollermanager.New(
				r.Logger, r.SeedClientSet, namespace, r.SecretsManager, kubecontrollermanager.Values{})},
			KubeScheduler: gardenletScheduler{r: r},
		},
		Extensions: &shootpkg.Extensions{},
	}
	var err error
	r.Shoot.Components.Extensions.Extension, err = r.DefaultExtension(ctx)
	return err
}

// gardenletNothing is a component that the bench does not have.
type gardenletNothing struct{}

func (gardenletNothing) Deploy(context.Context) error      { return nil }
func (gardenletNothing) Destroy(context.Context) error     { return nil }
func (gardenletNothing) Wait(context.Context) error        { return nil }
func (gardenletNothing) WaitCleanup(context.Context) error { return nil }

// gardenletEtcd is the etcd of the bench's Shoot, which goes on running while the API server is down.
type gardenletEtcd struct {
	etcd.Interface
	gardenletNothing
}

func (gardenletEtcd) Scale(context.Context, int32) error  { return nil }
func (e gardenletEtcd) Deploy(ctx context.Context) error  { return e.gardenletNothing.Deploy(ctx) }
func (e gardenletEtcd) Destroy(ctx context.Context) error { return e.gardenletNothing.Destroy(ctx) }
func (e gardenletEtcd) Wait(ctx context.Context) error    { return e.gardenletNothing.Wait(ctx) }
func (e gardenletEtcd) WaitCleanup(ctx context.Context) error {
	return e.gardenletNothing.WaitCleanup(ctx)
}

// gardenletAPIServer is Gardener's kube-apiserver component, but for what its Deploy writes.
type gardenletAPIServer struct {
	kubeapiserver.Interface
	r *gardenletRun
}

func (c *gardenletAPIServer) Deploy(ctx context.Context) error {
	return c.r.deploy(ctx, v1beta1constants.DeploymentNameKubeAPIServer, ptr.Deref(c.GetAutoscalingReplicas(), 0))
}

// gardenletControllerManager is Gardener's kube-controller-manager component, but for what its Deploy writes.
type gardenletControllerManager struct {
	kubecontrollermanager.Interface
	r        *gardenletRun
	replicas int32
}

func (c *gardenletControllerManager) SetReplicaCount(replicas int32) { c.replicas = replicas }

func (c *gardenletControllerManager) Deploy(ctx context.Context) error {
	return c.r.deploy(ctx, v1beta1constants.DeploymentNameKubeControllerManager, c.replicas)
}

// WaitForControllerToBeActive differs from Gardener's, which reads the leader election: the bench has none.
func (c *gardenletControllerManager) WaitForControllerToBeActive(ctx context.Context) error {
	return c.Wait(ctx)
}

type gardenletScheduler struct {
	gardenletNothing
	r *gardenletRun
}

// Deploy scales the scheduler to 0 as soon as the Shoot is to hibernate, as DefaultKubeScheduler does.
func (c gardenletScheduler) Deploy(ctx context.Context) error {
	return c.r.deploy(ctx, v1beta1constants.DeploymentNameKubeScheduler, c.r.Shoot.GetReplicas(1))
}

func (r *gardenletRun) deployResourceManager(ctx context.Context) error {
	replicas, err := r.resourceManagerReplicas(ctx)
	if err != nil {
		return err
	}
	return r.deploy(ctx, v1beta1constants.DeploymentNameGardenerResourceManager, replicas)
}

// resourceManagerReplicas is determineControllerReplicas of botanist, which is not exported.
func (r *gardenletRun) resourceManagerReplicas(ctx context.Context) (int32, error) {
	anew := r.operation == gardencorev1beta1.LastOperationTypeCreate || r.operation == gardencorev1beta1.LastOperationTypeRestore
	if r.Shoot.HibernationEnabled && (anew || r.Shoot.GetInfo().Status.IsHibernated) {
		return kubernetesutils.CurrentReplicaCountForDeployment(ctx, r.SeedClientSet.Client(), r.Shoot.ControlPlaneNamespace, v1beta1constants.DeploymentNameGardenerResourceManager)
	}
	if ptr.Deref(r.Shoot.Components.ControlPlane.KubeAPIServer.GetAutoscalingReplicas(), 0) == 0 {
		return 0, nil
	}
	return 1, nil
}

func (r *gardenletRun) waitResourceManager(ctx context.Context) error {
	ready := health.IsDeploymentUpdated(r.SeedClientSet.APIReader(),
		gardenletDeployment(r.Shoot.ControlPlaneNamespace, v1beta1constants.DeploymentNameGardenerResourceManager))
	return eventually(ctx, 5*time.Minute, func(ctx context.Context) error {
		_, err := ready(ctx)
		return err
	})
}

func gardenletDeployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func (r *gardenletRun) deploy(ctx context.Context, name string, replicas int32) error {
	deployment := gardenletDeployment(r.Shoot.ControlPlaneNamespace, name)
	_, err := controllerutils.GetAndCreateOrMergePatch(ctx, r.SeedClientSet.Client(), deployment, func() error {
		labels := gardenletLabels[name]
		metav1.SetMetaDataLabel(&deployment.ObjectMeta, v1beta1constants.GardenRole, v1beta1constants.GardenRoleControlPlane)
		deployment.Spec.Replicas = &replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: "bench/" + name}}
		return nil
	})
	return err
}

// destroy deletes a Deployment, whose process ends then.
func (r *gardenletRun) destroy(ctx context.Context, name string) error {
	return client.IgnoreNotFound(r.SeedClientSet.Client().Delete(ctx, gardenletDeployment(r.Shoot.ControlPlaneNamespace, name)))
}
