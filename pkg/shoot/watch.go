// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package shoot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fillPatience is how long a pass waits for the cache to be filled; it goes on being filled afterwards.
const fillPatience = 5 * time.Second

// watched is the cache of a Shoot whose hooks are open, or are about to be.
type watched struct {
	cache   cache.Cache
	cancel  context.CancelFunc
	done    chan struct{}
	filled  chan struct{} // closed once the cache holds everything
	streams streams
}

// Interested names the namespaces in which pods, services and endpoints matter from now on.
func (c *Connection) Interested(namespaces ...string) {
	for _, namespace := range namespaces {
		c.interest.Store(namespace, struct{}{})
	}
}

// Reader reads pods, nodes, leases, services and endpoints: from the cache while it is filled and hears of every change, else
// from the API server. Everything else is read from there.
func (c *Connection) Reader() client.Reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched != nil && c.watched.isFilled() && c.watched.streams.allOpen() {
		return cached{c.watched.cache, c.Client}
	}
	return c.Client
}

// cached reads metadata alone from the API server: a cache would begin to watch its kind.
type cached struct {
	client.Reader
	server client.Reader
}

// Get is part of client.Reader.
func (r cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, metadata := o.(*metav1.PartialObjectMetadata); metadata {
		return r.server.Get(ctx, key, o, options...)
	}
	return r.Reader.Get(ctx, key, o, options...)
}

// Watch starts the cache, if it does not run, and waits for a while until it is filled. An error says that it is not, or not
// yet: it is filled in the background as long as StopWatching is not called.
func (c *Connection) Watch(ctx context.Context) error {
	w, running, err := c.startWatching(ctx)
	if err != nil || running {
		return err // who comes later does not wait, but reads from the API server until the cache is filled
	}
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	select {
	case <-w.filled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("failed to fill the cache of the Shoot: %w", ctx.Err())
	}
}

func (c *Connection) startWatching(ctx context.Context) (w *watched, running bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched != nil {
		return c.watched, true, nil
	}
	config := rest.CopyConfig(c.config)
	config.Timeout = 0 // a watch lasts
	httpClient := *c.http
	httpClient.Timeout = 0
	w = &watched{done: make(chan struct{}), filled: make(chan struct{}), streams: streams{open: map[string]*stream{}}}
	httpClient.Transport = w.streams.observe(httpClient.Transport)
	w.cache, err = cache.New(config, cache.Options{
		HTTPClient: &httpClient, Scheme: scheme, Mapper: mapper,
		DefaultTransform: strip,
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{corev1.NamespaceNodeLease: {}}},
		},
	})
	if err != nil {
		return nil, false, fmt.Errorf("failed to make a cache for the Shoot: %w", err)
	}
	if err := c.inform(ctx, w.cache); err != nil {
		return nil, false, err
	}
	background, stop := context.WithCancel(context.Background()) // outlives the pass; StopWatching ends it
	w.cancel, c.watched = stop, w
	go w.run(background, c.log)
	return w, false, nil
}

func (w *watched) run(ctx context.Context, log logr.Logger) {
	defer close(w.done)
	go func() {
		if w.cache.WaitForCacheSync(ctx) {
			close(w.filled)
		}
	}()
	if err := w.cache.Start(ctx); err != nil {
		log.Error(err, "Cache of the Shoot ended")
	}
}

func (w *watched) isFilled() bool {
	select {
	case <-w.filled:
		return true
	default:
		return false
	}
}

func (w *watched) stop() {
	w.cancel()
	<-w.done
}

// StopWatching ends the cache and all its watches.
func (c *Connection) StopWatching() {
	c.mu.Lock()
	w := c.watched
	c.watched = nil
	c.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

func (c *Connection) inform(ctx context.Context, shootCache cache.Cache) error {
	for _, object := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
		&corev1.Node{}, &corev1.Pod{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}, &coordinationv1.Lease{},
	} {
		informer, err := shootCache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("failed to watch %T in the Shoot: %w", object, err)
		}
		if _, isLease := object.(*coordinationv1.Lease); isLease {
			continue // renewed all the time; only an expired one matters, and that makes no event
		}
		if _, err := informer.AddEventHandler(c.handler()); err != nil {
			return fmt.Errorf("failed to watch %T in the Shoot: %w", object, err)
		}
	}
	return nil
}

func (c *Connection) handler() toolscache.ResourceEventHandler {
	tell := func(object any) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if o, ok := object.(client.Object); ok && c.matters(o) {
			c.notify(c.namespace)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		DeleteFunc: tell,
		UpdateFunc: func(old, new any) {
			before, ok := old.(*corev1.Node)
			if after, isNode := new.(*corev1.Node); ok && isNode && sameNode(before, after) {
				return
			}
			tell(new)
		},
	}
}

func (c *Connection) matters(o client.Object) bool {
	switch o.(type) {
	case *corev1.Pod, *corev1.Service, *discoveryv1.EndpointSlice:
		if o.GetNamespace() == metav1.NamespaceSystem && o.GetLabels()["app"] == "vpn-shoot" {
			return true
		}
		_, interesting := c.interest.Load(o.GetNamespace())
		return interesting
	default:
		return true
	}
}

// sameNode says whether nothing about a node changed but its heartbeat.
func sameNode(a, b *corev1.Node) bool {
	ready := func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	}
	return ready(a) == ready(b) && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero()
}

// strip removes what nothing decides on, so that a large Shoot costs little memory.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.ManagedFields, o.Annotations, o.OwnerReferences = nil, nil, nil
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
	case *corev1.Node:
		o.ManagedFields, o.Annotations, o.Status.Images = nil, nil, nil
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		o.ManagedFields, o.Webhooks = nil, nil // only an event; they are read from the API server
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		o.ManagedFields, o.Webhooks = nil, nil
	case client.Object:
		o.SetManagedFields(nil)
	}
	return object, nil
}
