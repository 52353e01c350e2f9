// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/cmd/gardener-extension-shoot-hibernation-guard/app"
)

func TestCommandTakesTheArguments(t *testing.T) {
	g := NewWithT(t)
	flags := app.NewCommand().Flags()
	g.Expect(flags.Parse(one[*appsv1.Deployment](t, render(t, values{})).Spec.Template.Spec.Containers[0].Args)).To(Succeed())
	g.Expect(flags.Args()).To(BeEmpty())
	for name, want := range args(t, render(t, values{})) {
		g.Expect(flags.Lookup(name).Value.String()).To(Equal(want), name)
	}
}
