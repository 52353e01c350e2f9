// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/controllerutils"
	"github.com/gardener/gardener/pkg/controllerutils/predicate"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/guard"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

const (
	// Name of the controller.
	Name = "lifecycle"
	// finalizer is the one the extension library sets for our suffix.
	finalizer = extension.FinalizerPrefix + "/" + v1alpha1.ExtensionType
	// heldRequeue is how often a held Extension is looked at again; heldAsleepRequeue while its Shoot sleeps, when gardenlet
	// tells of the wake-up by a new timestamp anyway.
	heldRequeue       = 5 * time.Second
	heldAsleepRequeue = time.Minute
	// awakePatience is how long a deleted Extension of an awake Shoot is held for hooks that are still open,
	// and any for claims that could not be given up (design section 6).
	awakePatience = 2 * time.Minute
)

// AddToManager adds the controller.
func AddToManager(ctx context.Context, mgr manager.Manager, g *guard.Guard, options controller.Options) error {
	act := &actuator{guard: g}
	if options.ReconciliationTimeout == 0 {
		options.ReconciliationTimeout = controllerutils.DefaultReconciliationTimeout
	}
	predicates := append(extension.DefaultPredicates(ctx, mgr, false),
		predicate.HasType(v1alpha1.ExtensionType), predicate.HasClass(extensionsv1alpha1.ExtensionClassShoot))
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		WithOptions(options).
		Watches(&extensionsv1alpha1.Extension{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicates...)).
		Complete(&reconciler{
			client: mgr.GetClient(), actuator: act, clock: g.Clock, events: g.Events,
			status: extensionscontroller.NewStatusUpdater(mgr.GetClient()),
			library: extension.NewReconciler(mgr, extension.AddArgs{
				Actuator: act, FinalizerSuffix: v1alpha1.ExtensionType, Type: v1alpha1.ExtensionType,
			}),
		})
}

// reconciler stands around the extension library's: the library cannot hold a deleted Extension without an error, and one
// that is held and enabled again would block the wake-up for ever.
type reconciler struct {
	client   client.Client
	actuator *actuator
	clock    clock.Clock
	events   events.EventRecorder
	status   extensionscontroller.StatusUpdater
	library  reconcile.Reconciler
	answered sync.Map // Extension -> gardener.cloud/timestamp of the last call that went well
}

// Reconcile holds a deleted Extension as long as its hooks need it; everything else is the library's.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	ex := &extensionsv1alpha1.Extension{}
	if err := r.client.Get(ctx, request.NamespacedName, ex); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ex.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(ex, finalizer) {
		return r.library.Reconcile(ctx, request)
	}
	switch ex.Annotations[v1beta1constants.GardenerOperation] {
	case v1beta1constants.GardenerOperationMigrate, v1beta1constants.GardenerOperationWaitForState:
		return r.library.Reconcile(ctx, request)
	}
	cluster, err := extensions.GetCluster(ctx, r.client, ex.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if cluster.Shoot == nil {
		return reconcile.Result{}, errors.New("the Cluster holds no Shoot")
	}
	if v1beta1helper.ShootNeedsForceDeletion(cluster.Shoot) || cluster.Shoot.DeletionTimestamp != nil {
		return r.library.Reconcile(ctx, request)
	}
	if extensionscontroller.IsFailed(cluster) {
		log.Info("Skipping the deletion of the Extension of a failed Shoot")
		return reconcile.Result{}, nil
	}
	timestamp := ex.Annotations[v1beta1constants.GardenerTimestamp]
	out, err := r.actuator.pass(ctx, log, ex, r.calls(ex))
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return reconcile.Result{RequeueAfter: time.Second}, nil // yielded to a call
	}
	if err == nil {
		r.answered.Store(request.NamespacedName, timestamp)
	}
	if err == nil && !holds(out, ex.DeletionTimestamp.Time, r.clock.Now()) {
		if out.OnRecord {
			log.Info("Extension is released with webhooks still open")
			if r.events != nil {
				r.events.Eventf(ex, nil, corev1.EventTypeWarning, v1alpha1.EventLeftFailOpen, "Release",
					"Released with webhooks still fail-open. The annotation %s on their configurations says what they were.", v1alpha1.OriginalsAnnotation)
			}
		}
		if out.Phase != phase.Moving && out.Phase != phase.Deleting {
			if err := r.actuator.guard.Garden.Remove(ctx, client.ObjectKeyFromObject(cluster.Shoot)); err != nil {
				log.Error(err, "Failed to remove constraints of the Shoot in the garden")
			}
		}
		r.answered.Delete(request.NamespacedName)
		return r.library.Reconcile(ctx, request)
	}
	if answerErr := r.answer(ctx, log, ex, err); answerErr != nil {
		return reconcile.Result{}, answerErr
	}
	if out.Phase == phase.Asleep {
		return reconcile.Result{RequeueAfter: heldAsleepRequeue}, nil
	}
	return reconcile.Result{RequeueAfter: heldRequeue}, nil
}

// calls says whether gardenlet waits for an answer: by an annotation, or by a timestamp, new as it deletes, of which no pass
// went well yet.
func (r *reconciler) calls(ex *extensionsv1alpha1.Extension) bool {
	before, known := r.answered.Load(client.ObjectKeyFromObject(ex))
	_, asked := ex.Annotations[v1beta1constants.GardenerOperation]
	return asked || !known || before != ex.Annotations[v1beta1constants.GardenerTimestamp]
}

// holds says whether a deleted Extension is still needed (design section 6).
func holds(out guard.Outcome, deleted, now time.Time) bool {
	switch {
	case out.Phase == phase.Moving, out.Phase == phase.Deleting:
		return false
	case out.Phase == phase.Asleep, out.HibernationEnabled:
		return true
	case out.Phase == phase.Awake:
		return (out.OnRecord || out.Claimed) && now.Sub(deleted) < awakePatience
	default:
		return out.OnRecord && !out.DeadlinePassed || out.Claimed && now.Sub(deleted) < awakePatience
	}
}

// answer tells gardenlet how the call of a held Extension went, if it asked: as one that is reconciled.
func (r *reconciler) answer(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, callErr error) error {
	operation, asked := ex.Annotations[v1beta1constants.GardenerOperation]
	if asked {
		if err := extensionscontroller.RemoveAnnotation(ctx, r.client, ex, v1beta1constants.GardenerOperation); err != nil {
			return err
		}
	}
	operationType := gardencorev1beta1.LastOperationTypeReconcile
	if operation == v1beta1constants.GardenerOperationRestore {
		operationType = gardencorev1beta1.LastOperationTypeRestore
	}
	if !asked && ex.Status.LastError == nil {
		return callErr
	}
	if callErr != nil {
		return r.status.Error(ctx, log, ex, callErr, operationType, "Failed to hold webhooks of the Shoot")
	}
	return r.status.Success(ctx, log, ex, operationType, "Held until the webhooks of the Shoot are restored")
}
