// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// DefaultSeedCRDs are what the extension and the flows around it need: each CRD costs memory and start-up time.
var DefaultSeedCRDs = []string{
	"extensions.gardener.cloud_clusters",
	"extensions.gardener.cloud_extensions",
	"extensions.gardener.cloud_workers",
	"resources.gardener.cloud_managedresources",
}

// createCRDs creates CRDs of the gardener module on the seed and waits until they are served.
func (b *Bench) createCRDs(ctx context.Context, names []string) error {
	dir, err := moduleDir(ctx, ".", "github.com/gardener/gardener")
	if err != nil {
		return err
	}
	creations, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		creations.Go(func() error {
			content, err := os.ReadFile(filepath.Join(dir, "example", "seed-crds", "10-crd-"+name+".yaml")) // #nosec G304
			if err != nil {
				return fmt.Errorf("failed to read CRD: %w", err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(content, crd); err != nil {
				return fmt.Errorf("failed to decode CRD %s: %w", name, err)
			}
			if err := b.Seed.Client().Create(ctx, crd); err != nil {
				return fmt.Errorf("failed to create CRD %s: %w", name, err)
			}
			return waitFor(ctx, b.Seed.Client(), crd, "established", func() bool { return established(crd) })
		})
	}
	return errors.Join(creations.Wait())
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
