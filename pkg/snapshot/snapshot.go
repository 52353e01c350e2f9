// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot is the only reader of a Shoot: it turns what the API server answers into the facts that the pure packages
// judge.
package snapshot

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// tunnelLabels are on the pods of the tunnel between control plane and nodes (gardener: pkg/component/networking/vpn/shoot).
var tunnelLabels = client.MatchingLabels{"app": "vpn-shoot"}

// Configurations lists the Shoot's webhook configurations, one list per kind. reader must not be a cache: what is written
// depends on it.
func Configurations(ctx context.Context, reader client.Reader) ([]hook.Configuration, error) {
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return reader.List(groupCtx, validating) })
	group.Go(func() error { return reader.List(groupCtx, mutating) })
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("failed to list webhook configurations: %w", err)
	}
	out := make([]hook.Configuration, 0, len(validating.Items)+len(mutating.Items))
	for i := range validating.Items {
		out = append(out, hook.FromValidating(&validating.Items[i]))
	}
	for i := range mutating.Items {
		out = append(out, hook.FromMutating(&mutating.Items[i]))
	}
	return out, nil
}

// Configuration reads one configuration again. It returns false when it no longer exists.
func Configuration(ctx context.Context, reader client.Reader, c hook.Configuration) (hook.Configuration, bool, error) {
	var err error
	key := client.ObjectKey{Name: c.Name}
	if c.Kind == hook.Mutating {
		o := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err = reader.Get(ctx, key, o); err == nil {
			return hook.FromMutating(o), true, nil
		}
	} else {
		o := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err = reader.Get(ctx, key, o); err == nil {
			return hook.FromValidating(o), true, nil
		}
	}
	if apierrors.IsNotFound(err) {
		return hook.Configuration{}, false, nil
	}
	return hook.Configuration{}, false, fmt.Errorf("failed to get %s %s: %w", c.Kind, c.Name, err)
}

// NoNodes says whether the Shoot has no Node object.
func NoNodes(ctx context.Context, reader client.Reader) (bool, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := reader.List(ctx, nodes, client.Limit(1)); err != nil {
		return false, fmt.Errorf("failed to list nodes: %w", err)
	}
	return len(nodes.Items) == 0, nil
}

// Cluster reads what all backends depend on. An error is part of the facts: nothing can be said then. now is the time by
// the API server's clock.
func Cluster(ctx context.Context, reader client.Reader, now time.Time) backend.Cluster {
	nodes, leases, tunnel := &corev1.NodeList{}, &coordinationv1.LeaseList{}, &corev1.PodList{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return reader.List(groupCtx, nodes) })
	group.Go(func() error { return reader.List(groupCtx, leases, client.InNamespace(corev1.NamespaceNodeLease)) })
	group.Go(func() error {
		return reader.List(groupCtx, tunnel, client.InNamespace(metav1.NamespaceSystem), tunnelLabels)
	})
	if err := group.Wait(); err != nil {
		return backend.Cluster{Now: now, Err: fmt.Errorf("failed to read nodes, leases and tunnel pods: %w", err)}
	}
	out := backend.Cluster{Now: now, Nodes: nodes.Items, NodeLeases: map[string]time.Time{}, TunnelPods: tunnel.Items}
	for _, lease := range leases.Items {
		if lease.Spec.RenewTime != nil {
			out.NodeLeases[lease.Name] = lease.Spec.RenewTime.Time
		}
	}
	return out
}

// Backends reads the facts about each backend. Errors are part of them.
func Backends(ctx context.Context, reader client.Reader, refs map[backend.Ref]struct{}) map[backend.Ref]backend.Facts {
	pods := map[string]podList{}
	out := make(map[backend.Ref]backend.Facts, len(refs))
	for ref := range refs {
		list, known := pods[ref.Namespace]
		if !known {
			list = podsOf(ctx, reader, ref.Namespace)
			pods[ref.Namespace] = list
		}
		facts := backend.Facts{NamespaceFound: true, Pods: list.items, Err: list.err}
		if facts.Err == nil {
			facts.Err = service(ctx, reader, ref, &facts)
		}
		out[ref] = facts
	}
	return out
}

type podList struct {
	items []corev1.Pod
	err   error
}

func podsOf(ctx context.Context, reader client.Reader, namespace string) podList {
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return podList{err: fmt.Errorf("failed to list pods in %s: %w", namespace, err)}
	}
	return podList{items: list.Items}
}

func service(ctx context.Context, reader client.Reader, ref backend.Ref, facts *backend.Facts) error {
	o := &corev1.Service{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o); err == nil {
		facts.Service = o
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to get service %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if facts.Service == nil {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := reader.Get(ctx, client.ObjectKey{Name: ref.Namespace}, namespace)
		facts.NamespaceFound = err == nil
		return client.IgnoreNotFound(err)
	}
	slices := &discoveryv1.EndpointSliceList{}
	if err := reader.List(ctx, slices, client.InNamespace(ref.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: ref.Name}); err != nil {
		return fmt.Errorf("failed to list endpoints of service %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	facts.Slices = slices.Items
	return nil
}
