// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/controller/tokenrequestor"
	resourcemanagerclient "github.com/gardener/gardener/pkg/resourcemanager/client"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
)

// ResourceManagerUser is the user of gardener-resource-manager on both clusters.
const ResourceManagerUser = "system:serviceaccount:kube-system:gardener-resource-manager"

// gardenletResourceManager stands for the Shoot's gardener-resource-manager: Gardener's own token requestor and
// ManagedResource reconcilers. It works through the Shoot's API server, so webhooks can stop it.
type gardenletResourceManager struct {
	bench  *Bench
	log    logr.Logger
	reader cache.Cache // of the seed

	mu   sync.Mutex
	end  context.CancelFunc // nil: does not run
	done chan struct{}
}

// start makes new clients, as a new process does, and works until stop.
func (m *gardenletResourceManager) start(ctx context.Context) error {
	tokens, resources, err := m.reconcilers()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		return nil
	}
	ctx, m.end = context.WithCancel(logf.IntoContext(ctx, m.log))
	done := make(chan struct{})
	m.done = done
	go func() {
		defer close(done)
		queue := map[string]*gardenletDue{}
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			m.syncSecrets(ctx, queue, tokens)
			m.syncResources(ctx, queue, resources)
		}, 200*time.Millisecond)
	}()
	return nil
}

func (m *gardenletResourceManager) stop(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil {
		return nil
	}
	m.end()
	<-m.done
	m.end = nil
	return nil
}

func (m *gardenletResourceManager) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.end != nil
}

func (m *gardenletResourceManager) reconcilers() (tokens, resources reconcile.Reconciler, err error) {
	as := func(config *rest.Config) *rest.Config {
		config.UserAgent = v1beta1constants.DeploymentNameGardenerResourceManager
		return config
	}
	source, err := client.New(as(m.bench.Seed.ConfigFor(ResourceManagerUser, "system:masters")), client.Options{Scheme: resourcemanagerclient.SourceScheme})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make client for seed: %w", err)
	}
	config := as(m.bench.Shoot.ConfigFor(ResourceManagerUser, "system:masters", "system:serviceaccounts", "system:serviceaccounts:kube-system"))
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make client for Shoot: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make REST mapper for Shoot: %w", err)
	}
	target, err := client.New(config, client.Options{Scheme: resourcemanagerclient.TargetScheme, Mapper: mapper, HTTPClient: httpClient})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make client for Shoot: %w", err)
	}
	managed := &managedresource.Reconciler{
		SourceClient: source, TargetClient: target, TargetScheme: resourcemanagerclient.TargetScheme, TargetRESTMapper: mapper,
		Clock: clock.RealClock{}, ClassFilter: resourcemanagerpredicate.NewClassFilter(resourcemanagerconfigv1alpha1.DefaultResourceClass),
		RequeueAfterOnDeletionPending: new(5 * time.Second),
	}
	managed.Config.ManagedByLabelValue = new(resourcesv1alpha1.GardenerManager)
	managed.Config.SyncPeriod = &metav1.Duration{Duration: time.Minute}
	return &tokenrequestor.Reconciler{
		SourceClient: source, TargetClient: target, Clock: clock.RealClock{}, JitterFunc: wait.Jitter,
		Class: new(resourcesv1alpha1.ResourceManagerClassShoot),
	}, managed, nil
}

// gardenletDue says when an object is to be reconciled again: when it changed, or at a time.
type gardenletDue struct {
	version  string
	at       time.Time // zero: only when it changed
	failures int
}

func (m *gardenletResourceManager) syncSecrets(ctx context.Context, queue map[string]*gardenletDue, reconciler reconcile.Reconciler) {
	secrets := &corev1.SecretList{}
	if err := m.reader.List(ctx, secrets, client.MatchingLabels{
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
		resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassShoot,
	}); err != nil {
		m.log.Error(err, "Failed to list secrets")
		return
	}
	for i := range secrets.Items {
		m.sync(ctx, queue, "secret/", &secrets.Items[i], reconciler)
	}
}

func (m *gardenletResourceManager) syncResources(ctx context.Context, queue map[string]*gardenletDue, reconciler reconcile.Reconciler) {
	resources := &resourcesv1alpha1.ManagedResourceList{}
	if err := m.reader.List(ctx, resources); err != nil {
		m.log.Error(err, "Failed to list ManagedResources")
		return
	}
	for i := range resources.Items {
		if resources.Items[i].Spec.Class == nil {
			m.sync(ctx, queue, "resource/", &resources.Items[i], reconciler)
		}
	}
}

func (m *gardenletResourceManager) sync(ctx context.Context, queue map[string]*gardenletDue, kind string, object client.Object, reconciler reconcile.Reconciler) {
	due := queue[kind+object.GetName()]
	if due == nil {
		due = &gardenletDue{}
		queue[kind+object.GetName()] = due
	}
	if due.version == object.GetResourceVersion() && (due.at.IsZero() || time.Now().Before(due.at)) {
		return
	}
	if due.failures > 0 && time.Now().Before(due.at) {
		return
	}
	result, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	due.version, due.at = object.GetResourceVersion(), time.Time{}
	if err != nil {
		due.failures++
		due.at = time.Now().Add(min(time.Second<<min(due.failures, 5), 10*time.Second))
		m.log.Error(err, "Failed to reconcile", "kind", kind, "name", object.GetName())
		return
	}
	due.failures = 0
	if result.RequeueAfter > 0 {
		due.at = time.Now().Add(result.RequeueAfter)
	}
}
