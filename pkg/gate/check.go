// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// Hidden says whether Gardener's check leaves the configuration out because of one of its labels. The label that excludes it from
// Gardener's remediator is not among them.
func Hidden(c hook.Configuration) bool {
	return labelled(c) || c.Labels[v1beta1constants.LabelApp] == v1beta1constants.DeploymentNameGardenerResourceManager
}

// labelled says whether the configuration carries the label with which a claim hides it.
func labelled(c hook.Configuration) bool {
	return c.Labels[v1alpha1.ClaimLabel] == v1alpha1.ClaimValue
}

// Remediated says whether Gardener's remediator left its warning on the configuration, which closes the gate until somebody
// removes it.
func Remediated(c hook.Configuration) bool {
	return c.Annotations[v1beta1constants.GardenerWarning] != ""
}

// Closes says whether Gardener's check finds the configuration, as it is now.
func Closes(c hook.Configuration) bool {
	if Hidden(c) {
		return false
	}
	for _, h := range c.Hooks {
		if Problematic(h) {
			return true
		}
	}
	return Remediated(c)
}
