// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply is the only writer to a Shoot.
package apply

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// Patch sends one patch to a configuration and returns the configuration as the API server has it now.
func Patch(ctx context.Context, c client.Client, configuration hook.Configuration, patch hook.Patch) (hook.Configuration, error) {
	return patchAs(ctx, c, v1alpha1.FieldManager, configuration, patch)
}

// Claim sends the patch that sets or removes the label on a configuration, and returns the configuration as it is now.
func Claim(ctx context.Context, c client.Client, configuration hook.Configuration, patch hook.Patch) (hook.Configuration, error) {
	return patchAs(ctx, c, v1alpha1.ClaimFieldManager, configuration, patch)
}

// ClaimKyverno sends the patch that sets or removes the label in Kyverno's ConfigMap, and returns the ConfigMap as it is now.
func ClaimKyverno(ctx context.Context, c client.Client, namespace string, patch hook.Patch) (*corev1.ConfigMap, error) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gate.KyvernoName}}
	if err := c.Patch(ctx, o, client.RawPatch(patch.Type, patch.Data), client.FieldOwner(v1alpha1.ClaimFieldManager)); err != nil {
		return nil, fmt.Errorf("failed to patch ConfigMap %s/%s: %w", o.Namespace, o.Name, err)
	}
	return o, nil
}

func patchAs(ctx context.Context, c client.Client, manager client.FieldOwner, configuration hook.Configuration, patch hook.Patch) (hook.Configuration, error) {
	raw := client.RawPatch(patch.Type, patch.Data)
	meta := metav1.ObjectMeta{Name: configuration.Name}
	if configuration.Kind == hook.Mutating {
		o := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
		if err := c.Patch(ctx, o, raw, manager); err != nil {
			return configuration, fmt.Errorf("failed to patch %s %s: %w", configuration.Kind, configuration.Name, err)
		}
		return hook.FromMutating(o), nil
	}
	o := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	if err := c.Patch(ctx, o, raw, manager); err != nil {
		return configuration, fmt.Errorf("failed to patch %s %s: %w", configuration.Kind, configuration.Name, err)
	}
	return hook.FromValidating(o), nil
}

// Report writes the report for the Shoot's owner, on change only. If there is none yet, it is begun only if begin says so.
func Report(ctx context.Context, c client.Client, report string, begin bool) error {
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ReportNamespace, Name: v1alpha1.ReportName},
		Data:       map[string]string{v1alpha1.ReportKey: report},
	}
	have := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err) && !begin:
		return nil
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, want, client.FieldOwner(v1alpha1.FieldManager))
	case err == nil && have.Data[v1alpha1.ReportKey] != report:
		before := have.DeepCopy()
		have.Data = want.Data
		err = c.Patch(ctx, have, client.MergeFrom(before), client.FieldOwner(v1alpha1.FieldManager))
	}
	if err != nil {
		return fmt.Errorf("failed to write ConfigMap %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}

// Event tells on a configuration, inside the Shoot, what was done to it.
func Event(ctx context.Context, c client.Client, configuration hook.Configuration, eventType, reason, action, note string, now time.Time) error {
	if len(note) > 1024 { // limit of the events API
		note = note[:1021] + "..."
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: v1alpha1.FieldManager + "-"},
		Regarding: corev1.ObjectReference{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: string(configuration.Kind),
			Name: configuration.Name, UID: configuration.UID,
		},
		EventTime: metav1.NewMicroTime(now), Type: eventType, Reason: reason, Action: action, Note: note,
		ReportingController: v1alpha1.GroupName, ReportingInstance: v1alpha1.FieldManager,
	}
	if err := c.Create(ctx, event); err != nil {
		return fmt.Errorf("failed to create an event for %s %s: %w", configuration.Kind, configuration.Name, err)
	}
	return nil
}
