// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// FindContradictions finds what is valid in a GuardConfig, but cannot be what its author means: rules that no hook ever
// reaches, since the first rule that matches a hook decides, and a wake-up that is over before a backend could be ready for
// long enough. path is where the config stands.
func FindContradictions(config *v1alpha1.GuardConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range config.Webhooks {
		for j, earlier := range config.Webhooks[:i] {
			if !covers(earlier, rule) {
				continue
			}
			fault := fmt.Sprintf("webhooks[%d] matches all that this rule matches and comes first, so this one has no effect: remove one of them, or put this one first", j)
			if earlier.Action != rule.Action {
				fault = fmt.Sprintf("webhooks[%d] says %s for all that this rule matches and comes first, so %s has no effect: remove one of them, or put this one first", j, earlier.Action, rule.Action)
			}
			errs = append(errs, field.Invalid(path.Child("webhooks").Index(i), describe(rule), fault))
			break
		}
	}
	if wakingUp := config.WakingUp; wakingUp != nil && wakingUp.Deadline != nil && config.Stabilization != nil &&
		config.Stabilization.Duration >= wakingUp.Deadline.Duration {
		errs = append(errs, field.Invalid(path.Child("stabilization"), config.Stabilization.Duration.String(), fmt.Sprintf(
			"set less than wakingUp.deadline (%s), or no backend is ready for long enough before that", wakingUp.Deadline.Duration)))
	}
	return errs
}

// covers says whether every hook that b matches is matched by a, too. A rule without conditions matches nothing.
func covers(a, b v1alpha1.WebhookRule) bool {
	if a.Configuration == "" && a.Hook == "" && a.Namespace == "" {
		return false
	}
	within := func(a, b string) bool { return a == "" || a == b }
	return within(a.Configuration, b.Configuration) && within(a.Hook, b.Hook) && within(a.Namespace, b.Namespace)
}

func describe(rule v1alpha1.WebhookRule) string {
	var out string
	for _, part := range []struct{ name, value string }{
		{"configuration", rule.Configuration}, {"hook", rule.Hook}, {"namespace", rule.Namespace}, {"action", string(rule.Action)},
	} {
		if part.value == "" {
			continue
		}
		if out != "" {
			out += ", "
		}
		out += part.name + ": " + part.value
	}
	return out
}
