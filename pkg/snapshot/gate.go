// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// KyvernoConfigMap reads Kyverno's ConfigMap in a namespace. That there is none, or an error, is part of the facts.
func KyvernoConfigMap(ctx context.Context, reader client.Reader, namespace string) *gate.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gate.KyvernoName}}
	err := reader.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case apierrors.IsNotFound(err):
		return &gate.ConfigMap{Namespace: namespace}
	case err != nil:
		return &gate.ConfigMap{Namespace: namespace, Err: err.Error()}
	}
	return ConfigMapFacts(o)
}

// ConfigMapFacts is what is to be known of Kyverno's ConfigMap.
func ConfigMapFacts(o *corev1.ConfigMap) *gate.ConfigMap {
	_, managed := o.Annotations[resourcesv1alpha1.OriginAnnotation]
	facts := &gate.ConfigMap{
		Namespace: o.Namespace, Found: true, UID: o.UID, ResourceVersion: o.ResourceVersion, GardenerManaged: managed,
		Managers: hook.Managers(o.ManagedFields, "f:data", "f:"+gate.KyvernoKey),
	}
	applied := slices.DeleteFunc(slices.Clone(o.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation != metav1.ManagedFieldsOperationApply
	})
	facts.Appliers = hook.Managers(applied, "f:data", "f:"+gate.KyvernoKey)
	if value, has := o.Data[gate.KyvernoKey]; has {
		facts.Labels = &value
	}
	return facts
}

// ServiceExists says whether a Service exists.
func ServiceExists(ctx context.Context, reader client.Reader, key client.ObjectKey) (bool, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err := reader.Get(ctx, key, o)
	return err == nil, client.IgnoreNotFound(err)
}
