// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle answers gardenlet: the reconciler of Extension resources.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/guard"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

// callTimeout bounds a lifecycle call: gardenlet judges an attempt by the error of the one before, and gives up after about
// 35 s (gardener: pkg/extensions/customresources.go).
const callTimeout = 18 * time.Second

// actuator runs the pass for gardenlet, and sees to the extension's access to the Shoot.
type actuator struct {
	guard *guard.Guard
}

var _ extension.Actuator = (*actuator)(nil)

// Reconcile opens what must be open before workers go or come. It never waits for backends.
func (a *actuator) Reconcile(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	out, err := a.pass(ctx, log, ex, true)
	if err == nil && out.ConfigError != nil && out.Phase == phase.Awake && !out.OnRecord {
		return fmt.Errorf("spec.providerConfig cannot be used: %w", out.ConfigError)
	}
	return err
}

// Restore is a Reconcile: the record came along in status.state.
func (a *actuator) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.Reconcile(ctx, log, ex)
}

// Delete ends the access to the Shoot: it is only reached once everything on record was given back, or may be left (see
// reconciler). It does not wait: gardener-resource-manager need not run, and gardenlet awaits it when it deletes the Shoot.
func (a *actuator) Delete(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return access.Remove(ctx, a.guard.Seed, ex.Namespace)
}

// ForceDelete is a Delete. What gardener-resource-manager cannot finish, gardenlet does later in its flow.
func (a *actuator) ForceDelete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.Delete(ctx, log, ex)
}

// Migrate leaves the rights in the Shoot to the next seed. The record travels in status.state, and the Shoot must not be written
// to. Only an Extension that is deleted anyway takes leave of the Shoot, as far as that is possible at once.
func (a *actuator) Migrate(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if ex.DeletionTimestamp != nil {
		if _, err := a.pass(ctx, log, ex, true); err != nil {
			log.Error(err, "Failed to take leave of the Shoot before its control plane moves")
		}
	}
	return access.Leave(ctx, a.guard.Seed, ex.Namespace)
}

// pass runs a pass, as gardenlet's call or on our own account. Its errors are retryable: none carries an error code.
func (a *actuator) pass(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, call bool) (guard.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var accessErr error
	if call {
		accessErr = access.Ensure(ctx, a.guard.Seed, ex.Namespace)
	}
	out, err := a.guard.Pass(ctx, log, client.ObjectKeyFromObject(ex), call)
	if err == nil && out.HoldBack != nil {
		err = out.HoldBack
	}
	if accessErr != nil && (out.InTransition || out.Phase == phase.Asleep) {
		// No sleep and no wake-up is held up: the access as it is may do, or Gardener's own kubeconfig does.
		log.Error(accessErr, "Failed to see to the access to the Shoot")
		return out, err
	}
	return out, errors.Join(err, accessErr)
}
