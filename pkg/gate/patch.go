// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

type patchBody struct {
	Metadata patchMetadata      `json:"metadata"`
	Data     map[string]*string `json:"data,omitempty"`
}

type patchMetadata struct {
	UID             types.UID          `json:"uid"`
	ResourceVersion string             `json:"resourceVersion"`
	Labels          map[string]*string `json:"labels,omitempty"`
}

// Patch returns the JSON merge patch of an action, to be sent with the field manager v1alpha1.ClaimFieldManager. It carries uid
// and resource version: the API server refuses it when the object was changed (409) or re-created (409 or 422) since it was read.
// Of a configuration it has only the one label; of Kyverno's ConfigMap only the key with the labels, in which those of others
// stay. claim is the one on record: it says whether the key goes with the last label.
func Patch(a Action, claim v1alpha1.Claim) (hook.Patch, error) {
	var body patchBody
	if a.Configuration != nil {
		body.Metadata = patchMetadata{UID: a.Configuration.UID, ResourceVersion: a.Configuration.ResourceVersion,
			Labels: map[string]*string{v1alpha1.ClaimLabel: nil}}
		if a.Set {
			value := v1alpha1.ClaimValue
			body.Metadata.Labels[v1alpha1.ClaimLabel] = &value
		}
	} else {
		value, err := kyvernoValue(a, claim)
		if err != nil {
			return hook.Patch{}, err
		}
		body.Metadata = patchMetadata{UID: a.ConfigMap.UID, ResourceVersion: a.ConfigMap.ResourceVersion}
		body.Data = map[string]*string{KyvernoKey: value}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return hook.Patch{}, fmt.Errorf("failed to encode claim: %w", err)
	}
	return hook.Patch{Type: types.MergePatchType, Data: data}, nil
}

// kyvernoValue is the new value of KyvernoKey, nil if the key goes.
func kyvernoValue(a Action, claim v1alpha1.Claim) (*string, error) {
	labels, err := kyvernoLabels(a.ConfigMap)
	if err != nil {
		return nil, err
	}
	if a.Set {
		labels[v1alpha1.ClaimLabel] = v1alpha1.ClaimValue
	} else {
		delete(labels, v1alpha1.ClaimLabel)
	}
	if len(labels) == 0 && claim.KeyAdded {
		return nil, nil
	}
	data, err := json.Marshal(labels)
	if err != nil {
		return nil, fmt.Errorf("failed to encode %s: %w", KyvernoKey, err)
	}
	value := string(data)
	return &value, nil
}
