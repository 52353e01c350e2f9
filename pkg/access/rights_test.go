// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

func TestRights(t *testing.T) {
	t.Run("there is no wildcard, and nothing is deleted, replaced or escalated", func(t *testing.T) {
		g := NewWithT(t)
		for namespace, rules := range access.Rules() {
			for _, rule := range rules {
				all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
				g.Expect(all).NotTo(ContainElement("*"), namespace)
				g.Expect(rule.Verbs).To(HaveEach(BeElementOf("get", "list", "watch", "create", "patch")), namespace)
				g.Expect(rule.Resources).NotTo(ContainElement("secrets"), namespace)
				g.Expect(rule.APIGroups).NotTo(ContainElement("rbac.authorization.k8s.io"), namespace)
			}
		}
	})
	t.Run("ConfigMaps are read and changed by name only", func(t *testing.T) {
		for _, rules := range access.Rules() {
			for _, rule := range rules {
				if slices.Contains(rule.Resources, "configmaps") && !slices.Equal(rule.Verbs, []string{"create"}) {
					NewWithT(t).Expect(rule.ResourceNames).To(HaveLen(1))
				}
			}
		}
	})
}
