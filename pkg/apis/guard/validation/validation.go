// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation checks a GuardConfig.
package validation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// ValidateGuardConfig checks every bound that is documented on the fields of a GuardConfig. Fields that are not set are
// valid. path is where the config stands, nil at the root; it names the field in each error.
func ValidateGuardConfig(config *v1alpha1.GuardConfig, path *field.Path) field.ErrorList {
	errs := oneOf(config.Mode, path.Child("mode"), v1alpha1.ModeGuard, v1alpha1.ModeReport)
	for i, rule := range config.Webhooks {
		errs = append(errs, validateRule(rule, path.Child("webhooks").Index(i))...)
	}
	if timeouts := config.OpenTimeouts; timeouts != nil {
		errs = append(errs, validateTimeout(timeouts.Mutating, path.Child("openTimeouts", "mutating"))...)
		errs = append(errs, validateTimeout(timeouts.Validating, path.Child("openTimeouts", "validating"))...)
	}
	errs = append(errs, between(config.Stabilization, 0, 10*time.Minute, path.Child("stabilization"))...)
	if wakingUp := config.WakingUp; wakingUp != nil {
		errs = append(errs, atLeast(wakingUp.Deadline, time.Minute, path.Child("wakingUp", "deadline"))...)
		errs = append(errs, oneOf(wakingUp.AfterDeadline, path.Child("wakingUp", "afterDeadline"),
			v1alpha1.AfterDeadlineKeepOpen, v1alpha1.AfterDeadlineRestore)...)
	}
	if goingDown := config.GoingDown; goingDown != nil {
		errs = append(errs, atLeast(goingDown.Deadline, 10*time.Minute, path.Child("goingDown", "deadline"))...)
	}
	return append(errs, oneOf(config.HibernationConstraint, path.Child("hibernationConstraint"), v1alpha1.ConstraintLift, v1alpha1.ConstraintLeave)...)
}

func validateRule(rule v1alpha1.WebhookRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Configuration == "" && rule.Hook == "" && rule.Namespace == "" {
		errs = append(errs, field.Required(path, "set at least one of configuration, hook and namespace, or the rule would match every hook"))
	}
	if rule.Action == "" {
		return append(errs, field.Required(path.Child("action"), fmt.Sprintf("set it to %q or %q", v1alpha1.ActionGuard, v1alpha1.ActionLeave)))
	}
	return append(errs, oneOf(&rule.Action, path.Child("action"), v1alpha1.ActionGuard, v1alpha1.ActionLeave)...)
}

// validateTimeout holds timeouts to the range that the API server allows for timeoutSeconds of a webhook.
func validateTimeout(seconds *int32, path *field.Path) field.ErrorList {
	if seconds == nil || (*seconds >= 1 && *seconds <= 30) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, "set whole seconds from 1 to 30, or leave it out for the default")}
}

func oneOf[T ~string](value *T, path *field.Path, valid ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	for _, v := range valid {
		if *value == v {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, *value, valid)}
}

func atLeast(value *metav1.Duration, least time.Duration, path *field.Path) field.ErrorList {
	if value == nil || value.Duration >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(), fmt.Sprintf("set at least %s, or leave it out for the default", least))}
}

func between(value *metav1.Duration, least, most time.Duration, path *field.Path) field.ErrorList {
	if value == nil || (value.Duration >= least && value.Duration <= most) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(), fmt.Sprintf("set at least %s and at most %s, or leave it out for the default", least, most))}
}
