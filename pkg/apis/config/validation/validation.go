// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation checks a ControllerConfiguration.
package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// ValidateControllerConfiguration checks every bound that is documented on the fields of a ControllerConfiguration. Fields
// that are not set are valid. path is where the configuration stands, nil at the root; it names the field in each error.
func ValidateControllerConfiguration(config *v1alpha1.ControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if handling := config.HibernationConstraint; handling != nil && *handling != guardv1alpha1.ConstraintLift && *handling != guardv1alpha1.ConstraintLeave {
		errs = append(errs, field.NotSupported(path.Child("hibernationConstraint"), *handling,
			[]guardv1alpha1.ConstraintHandling{guardv1alpha1.ConstraintLift, guardv1alpha1.ConstraintLeave}))
	}
	if care := config.Care; care != nil && care.SyncPeriod != nil && care.SyncPeriod.Duration < 10*time.Second {
		errs = append(errs, field.Invalid(path.Child("care", "syncPeriod"), care.SyncPeriod.Duration.String(), "set at least 10s"))
	}
	if config.ShootClient == nil {
		return errs
	}
	client, path := config.ShootClient, path.Child("shootClient")
	if timeout := client.Timeout; timeout != nil && (timeout.Duration < time.Second || timeout.Duration > 15*time.Second) {
		errs = append(errs, field.Invalid(path.Child("timeout"), timeout.Duration.String(), "set at least 1s and at most 15s: a lifecycle call must return within 20s"))
	}
	// client-go reads zero as its own default and less as "no limit".
	if client.QPS != nil && *client.QPS <= 0 {
		errs = append(errs, field.Invalid(path.Child("qps"), *client.QPS, "set more than 0"))
	}
	if client.Burst != nil && *client.Burst < 1 {
		errs = append(errs, field.Invalid(path.Child("burst"), *client.Burst, "set at least 1"))
	}
	if patience := client.TokenPatience; patience != nil && (patience.Duration < 0 || patience.Duration > 10*time.Second) {
		errs = append(errs, field.Invalid(path.Child("tokenPatience"), patience.Duration.String(), "set at least 0s and at most 10s: a lifecycle call must return within 20s"))
	}
	return errs
}
