// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
)

// SeedUser is the user of what stands for the seed's own controllers and kubelets.
const SeedUser = "bench-seed"

// gardenletSeed stands for the seed's controllers and kubelets: it makes the Deployments of the Shoot's control plane
// come true, with a pod each, and empties the namespace when it is deleted.
// It reads from a cache and writes only on change. What it cannot read it leaves alone.
type gardenletSeed struct {
	namespace string
	log       logr.Logger
	reader    client.Reader // cached
	client    client.Client
	processes []*gardenletProcess
}

// gardenletProcess is what runs for one Deployment. It is started and stopped when the Deployment's replicas change;
// one that was stopped or started by other means is left at that, and the status says so.
type gardenletProcess struct {
	deployment  string
	start, stop func(context.Context) error
	running     func() bool
	known       bool // a Deployment was seen: from then on it decides
	up          bool // what was reached last
	busy        sync.Mutex
}

func (g *Gardenlet) startSeed(ctx context.Context) error {
	b := g.bench
	config := b.Seed.ConfigFor(SeedUser, "system:masters")
	config.UserAgent = SeedUser
	reader, err := cache.New(config, cache.Options{
		Scheme:            kubernetes.SeedScheme,
		DefaultNamespaces: map[string]cache.Config{b.Namespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&corev1.Namespace{}: {Field: fields.OneTermEqualSelector("metadata.name", b.Namespace)}},
	})
	if err != nil {
		return fmt.Errorf("failed to make cache for seed: %w", err)
	}
	direct, err := client.New(config, client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return fmt.Errorf("failed to make client for seed: %w", err)
	}
	for _, kind := range []client.Object{&appsv1.Deployment{}, &corev1.Namespace{}, &corev1.Secret{}, &resourcesv1alpha1.ManagedResource{}} {
		if _, err := reader.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("failed to watch %T on seed: %w", kind, err)
		}
	}
	manager := b.resourceManager
	s := &gardenletSeed{namespace: b.Namespace, log: g.log.WithName("seed"), reader: reader, client: direct}
	runs := func(slot **child) func() bool {
		return func() bool { return b.Shoot.child(component{slot: slot}).running() }
	}
	s.processes = []*gardenletProcess{
		{deployment: v1beta1constants.DeploymentNameKubeAPIServer,
			start: b.Shoot.StartAPIServer, stop: b.Shoot.StopAPIServer, running: b.Shoot.Running},
		{deployment: v1beta1constants.DeploymentNameKubeControllerManager,
			start: b.Shoot.StartControllerManager, stop: b.Shoot.StopControllerManager, running: runs(&b.Shoot.controllerManager)},
		{deployment: v1beta1constants.DeploymentNameKubeScheduler,
			start: b.Shoot.StartScheduler, stop: b.Shoot.StopScheduler, running: runs(&b.Shoot.scheduler)},
		{deployment: v1beta1constants.DeploymentNameGardenerResourceManager,
			start: manager.start, stop: manager.stop, running: manager.running},
	}
	g.background.Go(func() { _ = reader.Start(ctx) })
	filled, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !reader.WaitForCacheSync(filled) {
		return fmt.Errorf("failed to fill cache for seed: %w", context.Cause(filled))
	}
	g.background.Go(func() {
		s.run(ctx)
		_ = manager.stop(ctx) // returns no error
	})
	return nil
}

func (s *gardenletSeed) run(ctx context.Context) {
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, p := range s.processes {
			if p.busy.TryLock() {
				inFlight.Go(func() {
					defer p.busy.Unlock()
					if err := s.sync(ctx, p); err != nil && ctx.Err() == nil {
						s.log.Error(err, "Failed to make Deployment come true", "deployment", p.deployment)
					}
				})
			}
		}
		if err := s.emptyNamespace(ctx); err != nil && ctx.Err() == nil {
			s.log.Error(err, "Failed to empty namespace")
		}
	}, 200*time.Millisecond)
}

// sync starts or ends the process of one Deployment, and writes its pod and status.
func (s *gardenletSeed) sync(ctx context.Context, p *gardenletProcess) error {
	deployment := gardenletDeployment(s.namespace, p.deployment)
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	exists := err == nil
	if !exists && !p.known {
		return nil
	}
	if !p.known {
		p.known, p.up = true, p.running()
	}
	if exists && deployment.DeletionTimestamp == nil && ptr.Deref(deployment.Spec.Replicas, 1) > 0 {
		return s.bringUp(ctx, p, deployment)
	}
	if exists {
		if err := s.writeStatus(ctx, deployment, 0); err != nil {
			return err
		}
	}
	return s.bringDown(ctx, p)
}

func (s *gardenletSeed) bringUp(ctx context.Context, p *gardenletProcess, deployment *appsv1.Deployment) error {
	if !p.up {
		if err := s.writeStatus(ctx, deployment, 0); err != nil {
			return err
		}
		if err := p.start(ctx); err != nil {
			return err
		}
		p.up = true
	}
	if !p.running() {
		return s.writeStatus(ctx, deployment, 0)
	}
	if isWritten(deployment, 1) {
		return nil
	}
	if err := s.createPod(ctx, deployment); err != nil {
		return err
	}
	return s.writeStatus(ctx, deployment, 1)
}

// bringDown does as a kubelet does: the pod is terminating until its process has ended.
func (s *gardenletSeed) bringDown(ctx context.Context, p *gardenletProcess) error {
	if !p.up {
		return nil
	}
	if err := s.deletePod(ctx, p, 30); err != nil {
		return err
	}
	if err := p.stop(ctx); err != nil {
		return err
	}
	if err := s.deletePod(ctx, p, 0); err != nil {
		return err
	}
	p.up = false
	return nil
}

func (s *gardenletSeed) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name + "-0"}}
}

func (s *gardenletSeed) createPod(ctx context.Context, deployment *appsv1.Deployment) error {
	pod := s.pod(deployment.Name)
	pod.Labels = deployment.Spec.Template.Labels
	pod.Spec = *deployment.Spec.Template.Spec.DeepCopy()
	pod.Spec.NodeName = "seed-node" // a pod without node is deleted at once, without grace
	if err := s.client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("failed to create pod: %w", err)
	}
	patch := client.MergeFrom(pod.DeepCopy())
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return s.client.Status().Patch(ctx, pod, patch)
}

func (s *gardenletSeed) deletePod(ctx context.Context, p *gardenletProcess, grace int64) error {
	err := s.client.Delete(ctx, s.pod(p.deployment), client.GracePeriodSeconds(grace))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to delete pod: %w", err)
	}
	return nil
}

// isWritten says whether the Deployment's status already says that so many replicas are ready.
func isWritten(deployment *appsv1.Deployment, ready int32) bool {
	s := deployment.Status
	return s.ObservedGeneration == deployment.Generation && s.ReadyReplicas == ready && len(s.Conditions) > 0
}

// writeStatus writes what the Deployment controller would.
func (s *gardenletSeed) writeStatus(ctx context.Context, deployment *appsv1.Deployment, ready int32) error {
	if isWritten(deployment, ready) {
		return nil
	}
	old := deployment.DeepCopy()
	available, progress := corev1.ConditionTrue, "NewReplicaSetAvailable"
	if ptr.Deref(deployment.Spec.Replicas, 1) > ready {
		available, progress = corev1.ConditionFalse, "ReplicaSetUpdated"
	}
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           ready, UpdatedReplicas: ready, ReadyReplicas: ready, AvailableReplicas: ready,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: available},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: progress},
		},
	}
	if err := s.client.Status().Patch(ctx, deployment, client.MergeFrom(old)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to write status of Deployment: %w", err)
	}
	return nil
}

// emptyNamespace does what the namespace controller does with a deleted namespace. Objects with finalizers keep it.
func (s *gardenletSeed) emptyNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	if err := s.reader.Get(ctx, client.ObjectKey{Name: s.namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	left := 0
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{},
		&resourcesv1alpha1.ManagedResourceList{}, &extensionsv1alpha1.ExtensionList{},
	} {
		if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			left++
			object := item.(client.Object)
			if _, isPod := object.(*corev1.Pod); isPod || object.GetDeletionTimestamp() != nil {
				return nil // pods go when their process has ended
			}
			return client.IgnoreNotFound(s.client.Delete(ctx, object))
		}); err != nil {
			return err
		}
	}
	if left > 0 {
		return nil
	}
	namespace = namespace.DeepCopy()
	patch := client.MergeFrom(namespace.DeepCopy())
	if controllerutil.RemoveFinalizer(namespace, metav1.FinalizerDeleteDependents) { // gardenlet deletes in the foreground
		if err := s.client.Patch(ctx, namespace, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	namespace.Spec.Finalizers = nil
	return client.IgnoreNotFound(s.client.SubResource("finalize").Update(ctx, namespace))
}
