// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package shoot

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
)

// Serves says whether the Shoot's API server serves an API group. It asks once per connection; an error is no answer.
func (c *Connection) Serves(ctx context.Context, group string) (bool, error) {
	if known, ok := c.groups.Load(group); ok {
		return known.(bool), nil
	}
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return false, fmt.Errorf("failed to make a discovery client for the Shoot: %w", err)
	}
	err = asks.RESTClient().Get().AbsPath("/apis/" + group).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("failed to ask for the API group %s: %w", group, err)
	}
	c.groups.Store(group, err == nil)
	return err == nil, nil
}
