// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestGarden(t *testing.T) {
	g := NewWithT(t)
	garden, err := bench.NewGarden(t.Context(), testr.New(t))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(garden.Close()).To(Succeed()) })
	g.Expect(garden.CreateShoot(t.Context(), &bench.Bench{Namespace: bench.DefaultNamespace}, bench.GardenletOptions{Extension: true})).To(Succeed())
}
