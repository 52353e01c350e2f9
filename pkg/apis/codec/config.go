// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	configvalidation "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/validation"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	guardvalidation "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/validation"
)

// DecodeConfig decodes the providerConfig of the extension, applies the defaults and validates the result. Nil and empty
// mean all defaults. Unknown fields, a wrong kind and wrong values are errors that name the field.
func DecodeConfig(raw *runtime.RawExtension) (*guardv1alpha1.GuardConfig, error) {
	data, err := bytesOf(raw)
	if err != nil {
		return nil, err
	}
	object, err := decodeStrict(data, guardv1alpha1.SchemeGroupVersion.WithKind("GuardConfig"))
	if err != nil {
		return nil, err
	}
	config := object.(*guardv1alpha1.GuardConfig)
	if errs := guardvalidation.ValidateGuardConfig(config, nil); len(errs) > 0 {
		return nil, fmt.Errorf("invalid GuardConfig: %w", errs.ToAggregate())
	}
	return config, nil
}

// DecodeControllerConfiguration decodes the content of the --config file, JSON or YAML, as DecodeConfig does it with the
// providerConfig.
func DecodeControllerConfiguration(data []byte) (*configv1alpha1.ControllerConfiguration, error) {
	object, err := decodeStrict(data, configv1alpha1.SchemeGroupVersion.WithKind("ControllerConfiguration"))
	if err != nil {
		return nil, err
	}
	config := object.(*configv1alpha1.ControllerConfiguration)
	if errs := configvalidation.ValidateControllerConfiguration(config, nil); len(errs) > 0 {
		return nil, fmt.Errorf("invalid ControllerConfiguration: %w", errs.ToAggregate())
	}
	return config, nil
}

// bytesOf is the JSON in raw: nil if there is none.
func bytesOf(raw *runtime.RawExtension) ([]byte, error) {
	if raw == nil || (len(raw.Raw) == 0 && raw.Object == nil) {
		return nil, nil
	}
	data, err := raw.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("failed to encode the given object: %w", err)
	}
	if string(data) == "null" {
		return nil, nil
	}
	return data, nil
}
