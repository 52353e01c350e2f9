// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

// outliveTokens does to the tokens for the Shoot what a sleep of 13 hours does. Without the guard there is none of its own, and
// the wake-up needs no further obstacle.
func (s *stage) outliveTokens(ctx context.Context) error {
	if !s.guarded {
		return nil
	}
	if err := s.gardenlet.ExpireTokens(ctx); err != nil {
		return err
	}
	s.tokensExpired = true
	for _, name := range []string{access.SecretName, v1beta1constants.SecretNameGardenerInternal} {
		end, err := s.bench.TokenEnd(ctx, client.ObjectKey{Namespace: s.bench.Namespace, Name: name})
		if err != nil {
			return err
		}
		s.tokensExpired = s.tokensExpired && end.Before(time.Now())
		s.timeline.line(markStep, "the token in Secret %s expired %.0f minutes ago", name, time.Since(end).Minutes())
	}
	return nil
}

// accessOf says how the guard got at the clusters.
func (s *stage) accessOf() (Access, error) {
	found := Access{TokensExpired: s.tokensExpired, Wrong: []string{}}
	uses, err := s.bench.Uses()
	if err != nil {
		return found, err
	}
	for _, u := range uses {
		if u.IsWrong() {
			found.Wrong = append(found.Wrong, u.String())
		}
	}
	return found, nil
}
