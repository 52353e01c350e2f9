// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package garden writes the guard's constraints into the status of Shoots in the garden cluster.
package garden

import (
	"context"
	"fmt"
	"os"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	kubernetesclient "github.com/gardener/gardener/pkg/client/kubernetes"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

const (
	// timeout bounds the writing: a pass does not wait for the garden.
	timeout = 3 * time.Second
	// tries bounds the writes against a Shoot whose status others write, too: gardenlet every minute.
	tries = 5
)

// Constraints writes constraints of our own types and leaves those of others alone. A nil Constraints does nothing.
type Constraints struct {
	client client.Client
	clock  clock.Clock
}

// New returns a writer that uses the client of the garden cluster.
func New(c client.Client, clock clock.Clock) *Constraints {
	return &Constraints{client: c, clock: clock}
}

// FromEnvironment returns a writer if gardenlet has injected a kubeconfig of the garden cluster, which it does if the
// ControllerDeployment says injectGardenKubeconfig; else nil.
func FromEnvironment(userAgent string, clock clock.Clock) (*Constraints, error) {
	path := os.Getenv(v1beta1constants.EnvGenericGardenKubeconfig)
	if path == "" {
		return nil, nil
	}
	config, err := kubernetesclient.RESTConfigFromKubeconfigFile(path, kubernetesclient.AuthTokenFile)
	if err != nil {
		return nil, fmt.Errorf("failed to read the kubeconfig of the garden in %s: %w", v1beta1constants.EnvGenericGardenKubeconfig, err)
	}
	config.UserAgent, config.Timeout = userAgent, timeout
	c, err := client.New(config, client.Options{Scheme: kubernetesclient.GardenScheme})
	if err != nil {
		return nil, fmt.Errorf("failed to make a client of the garden: %w", err)
	}
	return New(c, clock), nil
}

// Write sets the constraints on the Shoot, on change only. Of each only type, status, reason and message count; its times are
// kept or set here. A Shoot that is gone is no error.
func (c *Constraints) Write(ctx context.Context, shoot types.NamespacedName, constraints []gardencorev1beta1.Condition) error {
	return c.change(ctx, shoot, func(have []gardencorev1beta1.Condition) []gardencorev1beta1.Condition {
		for _, want := range constraints {
			old := v1beta1helper.GetOrInitConditionWithClock(c.clock, have, want.Type)
			updated := v1beta1helper.UpdatedConditionWithClock(c.clock, old, want.Status, want.Reason, want.Message)
			if old.Status != updated.Status || old.Reason != updated.Reason || old.Message != updated.Message {
				have = v1beta1helper.MergeConditions(have, updated)
			}
		}
		return have
	})
}

// Remove takes the guard's constraints off the Shoot. A Shoot that is gone is no error.
func (c *Constraints) Remove(ctx context.Context, shoot types.NamespacedName) error {
	return c.change(ctx, shoot, func(have []gardencorev1beta1.Condition) []gardencorev1beta1.Condition {
		return v1beta1helper.RemoveConditions(have, v1alpha1.ConstraintWebhooksEnforced, v1alpha1.ConstraintHibernationPrepared)
	})
}

// change patches the constraints with optimistic lock: the list is one value in a merge patch, and others write to it as well.
func (c *Constraints) change(ctx context.Context, key types.NamespacedName, change func([]gardencorev1beta1.Condition) []gardencorev1beta1.Condition) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for try := 1; ; try++ {
		shoot := &gardencorev1beta1.Shoot{}
		if err := c.client.Get(ctx, key, shoot); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := shoot.DeepCopy()
		shoot.Status.Constraints = change(shoot.Status.Constraints)
		if apiequality.Semantic.DeepEqual(before.Status.Constraints, shoot.Status.Constraints) {
			return nil
		}
		err := c.client.Status().Patch(ctx, shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil || !apierrors.IsConflict(err) || try == tries {
			return client.IgnoreNotFound(err)
		}
	}
}
