// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard is the loop: it runs passes over Shoots whose hooks are open, or about to be, driven by what changes on the
// seed and in the Shoots.
package guard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/controllerutils/predicate"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlpredicate "sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/guard"
)

const (
	// Name of the controller.
	Name = "guard"
	// settleTime gathers the events of one happening in a Shoot, such as a pod's end, into one pass.
	settleTime = 100 * time.Millisecond
	// maxErrorBackoff bounds the time between passes that fail for the seed's sake: hooks may be open, and nothing else would
	// wake the loop.
	maxErrorBackoff = 15 * time.Second
	// passTimeout bounds a pass of the loop.
	passTimeout = time.Minute
)

// Loop runs the passes. Notify and Continue may be called at any time.
type Loop struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
	keys  sync.Map // technical namespace -> Extension
	guard *guard.Guard
}

// Notify tells that something changed in a Shoot that is watched. It does not block.
func (l *Loop) Notify(namespace string) {
	if key, known := l.keys.Load(namespace); known {
		l.add(key.(types.NamespacedName), settleTime)
	}
}

// Continue tells that a lifecycle call ended and the loop has to take over. It does not block.
func (l *Loop) Continue(key types.NamespacedName) { l.add(key, 0) }

func (l *Loop) add(key types.NamespacedName, after time.Duration) {
	if queue := l.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
}

// AddToManager adds the controller.
func (l *Loop) AddToManager(mgr manager.Manager, g *guard.Guard, options controller.Options) error {
	l.guard = g
	if options.ReconciliationTimeout == 0 {
		options.ReconciliationTimeout = passTimeout
	}
	options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, maxErrorBackoff)
	toExtension := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		namespace := o.GetNamespace()
		if namespace == "" {
			namespace = o.GetName() // a Cluster is named after the namespace
		}
		return extensionsIn(ctx, mgr.GetClient(), namespace)
	})
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		WithOptions(options).
		Watches(&extensionsv1alpha1.Extension{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(
			predicate.HasType(v1alpha1.ExtensionType), predicate.HasClass(extensionsv1alpha1.ExtensionClassShoot), extensionChanged())).
		Watches(&extensionsv1alpha1.Cluster{}, toExtension, builder.WithPredicates(clusterChanged())).
		Watches(&appsv1.Deployment{}, toExtension, builder.WithPredicates(deploymentChanged())).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			l.queue.Store(&queue)
			return nil
		})).
		Complete(l)
}

// Reconcile runs one pass.
func (l *Loop) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	l.keys.Store(request.Namespace, request.NamespacedName)
	out, err := l.guard.Pass(ctx, logf.FromContext(ctx), request.NamespacedName, false)
	if errors.Is(err, context.Canceled) {
		return reconcile.Result{RequeueAfter: time.Second}, nil // yielded to a lifecycle call
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if !out.Exists {
		l.keys.Delete(request.Namespace)
	}
	return reconcile.Result{RequeueAfter: out.NextCheck}, nil
}

func extensionsIn(ctx context.Context, reader client.Reader, namespace string) []reconcile.Request {
	list := &extensionsv1alpha1.ExtensionList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to list Extensions", "namespace", namespace)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.Type == v1alpha1.ExtensionType {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// extensionChanged leaves out what we and the library write ourselves; the end of a lifecycle call tells the loop.
func extensionChanged() ctrlpredicate.Predicate {
	return ctrlpredicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	}
}

// clusterChanged passes on what the phase depends on.
func clusterChanged() ctrlpredicate.Predicate {
	return ctrlpredicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := shootOf(e.ObjectOld), shootOf(e.ObjectNew)
			if before == nil || after == nil {
				return true
			}
			return facts(before) != facts(after)
		},
	}
}

type shootFacts struct {
	enabled, hibernated, deleting bool
	operation                     gardencorev1beta1.LastOperationType
	state                         gardencorev1beta1.LastOperationState
}

func facts(s *gardencorev1beta1.Shoot) shootFacts {
	f := shootFacts{
		enabled:    s.Spec.Hibernation != nil && s.Spec.Hibernation.Enabled != nil && *s.Spec.Hibernation.Enabled,
		hibernated: s.Status.IsHibernated, deleting: s.DeletionTimestamp != nil,
	}
	if op := s.Status.LastOperation; op != nil {
		f.operation, f.state = op.Type, op.State
	}
	return f
}

func shootOf(o client.Object) *gardencorev1beta1.Shoot {
	cluster, ok := o.(*extensionsv1alpha1.Cluster)
	if !ok {
		return nil
	}
	shoot, err := extensionscontroller.ShootFromCluster(cluster)
	if err != nil {
		return nil
	}
	return shoot
}

// deploymentChanged passes on the start and the end of the Shoot's API server.
func deploymentChanged() ctrlpredicate.Predicate {
	named := ctrlpredicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetName() == v1beta1constants.DeploymentNameKubeAPIServer
	})
	return ctrlpredicate.And(named, ctrlpredicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*appsv1.Deployment)
			after, ok2 := e.ObjectNew.(*appsv1.Deployment)
			return !ok || !ok2 || replicas(before) != replicas(after) || before.Status.ReadyReplicas != after.Status.ReadyReplicas ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
		},
	})
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
