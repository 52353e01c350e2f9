// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission checks the extension's providerConfig while a Shoot is created or edited in the garden.
package admission

import (
	"bytes"
	"context"
	"fmt"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

const (
	// Name of the webhook.
	Name = "validator"
	// Path under which it is served.
	Path = "/webhooks/validate"
)

// Selector selects the Shoots that have the extension: Gardener sets the label, and users cannot (gardener:
// plugin/pkg/global/extensionlabels).
var Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
	v1beta1constants.LabelExtensionExtensionTypePrefix + v1alpha1.ExtensionType: "true",
}}

// timeoutSeconds is what an edit waits for at most when nothing answers; the check itself takes milliseconds.
const timeoutSeconds int32 = 3

// New returns the webhook for a manager whose cluster is the garden. It is fail-open: the controller on the seed checks the
// same config again and survives a faulty one, whereas a fail-closed webhook that does not answer would hold up every change of
// these Shoots: that they hibernate or wake up, and that Gardener takes its finalizer off a Shoot in deletion.
func New(mgr manager.Manager) (*extensionswebhook.Webhook, error) {
	webhook, err := extensionswebhook.New(mgr, extensionswebhook.Args{
		Name: Name, Path: Path, Target: extensionswebhook.TargetSeed, ObjectSelector: Selector,
		Validators: map[extensionswebhook.Validator][]extensionswebhook.Type{shootValidator{}: {{Obj: &gardencorev1beta1.Shoot{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("failed to make the webhook: %w", err)
	}
	webhook.FailurePolicy, webhook.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To(timeoutSeconds)
	return webhook, nil
}

type shootValidator struct{}

// Validate refuses a Shoot whose providerConfig is faulty. A config that was there before is let through: it must not stand in
// the way of an edit that is about something else, or of the deletion.
func (shootValidator) Validate(_ context.Context, newObj, oldObj client.Object) error {
	shoot, ok := newObj.(*gardencorev1beta1.Shoot)
	if !ok {
		return fmt.Errorf("expected a Shoot, got %T", newObj)
	}
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	extension, index := find(shoot)
	if extension == nil {
		return nil
	}
	if before, ok := oldObj.(*gardencorev1beta1.Shoot); ok && before != nil {
		if old, _ := find(before); old != nil && same(old.ProviderConfig, extension.ProviderConfig) {
			return nil
		}
	}
	path := field.NewPath("spec", "extensions").Index(index).Child("providerConfig")
	return codec.CheckConfig(extension.ProviderConfig, path).ToAggregate()
}

// find returns the extension if the Shoot has it enabled, and where it stands.
func find(shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.Extension, int) {
	for i, extension := range shoot.Spec.Extensions {
		if extension.Type == v1alpha1.ExtensionType && !ptr.Deref(extension.Disabled, false) {
			return &shoot.Spec.Extensions[i], i
		}
	}
	return nil, 0
}

// same says whether two configs mean the same, however they are written.
func same(a, b *runtime.RawExtension) bool {
	var left, right any
	// What is there twice means nothing that could be compared.
	if a != nil && yaml.UnmarshalStrict(a.Raw, &left) != nil || b != nil && yaml.UnmarshalStrict(b.Raw, &right) != nil {
		return a != nil && b != nil && bytes.Equal(a.Raw, b.Raw)
	}
	return apiequality.Semantic.DeepEqual(left, right)
}
