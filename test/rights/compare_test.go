// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestCompare(t *testing.T) {
	read := bench.Use{Cluster: "seed", Access: bench.AccessOwn, Verb: "get", Resource: "secrets", Namespace: "a", Name: "one", Count: 1}
	write := bench.Use{Cluster: "seed", Access: bench.AccessOwn, Verb: "create", Resource: "pods/eviction", Namespace: "here", Count: 2}
	gardeners := bench.Use{Cluster: "shoot", Access: bench.AccessGardeners, Verb: "list", Resource: "pods", Count: 1}
	with := func(u bench.Use, change func(*bench.Use)) bench.Use { change(&u); return u }
	for name, test := range map[string]struct {
		uses  []bench.Use
		wrong int
	}{
		"all was used":             {[]bench.Use{read, write}, 0},
		"one right was never used": {[]bench.Use{read}, 1},
		"another name was used":    {[]bench.Use{with(read, func(u *bench.Use) { u.Name = "two" }), write}, 2},
		"another namespace was":    {[]bench.Use{read, with(write, func(u *bench.Use) { u.Namespace = "there" })}, 2},
		"another verb was":         {[]bench.Use{read, write, with(read, func(u *bench.Use) { u.Verb = "list" })}, 1},
		"no subresource was":       {[]bench.Use{read, with(write, func(u *bench.Use) { u.Resource = "pods" })}, 2},
		"another cluster was":      {[]bench.Use{with(read, func(u *bench.Use) { u.Cluster = "shoot" }), write}, 2},
		"a request was refused":    {[]bench.Use{read, write, with(read, func(u *bench.Use) { u.Refused = 403 })}, 1},
		"that was expected":        {[]bench.Use{read, write, with(read, func(u *bench.Use) { u.Refused, u.Expected = 401, "early" })}, 0},
		"Gardener's access was":    {[]bench.Use{read, write, gardeners}, 1},
		"that was expected, too":   {[]bench.Use{read, write, with(gardeners, func(u *bench.Use) { u.Expected = "a call" })}, 0},
		"a path is no resource":    {[]bench.Use{read, write, {Cluster: "seed", Access: bench.AccessOwn, Verb: "get", Name: "/apis", Count: 1}}, 0},
		"nothing was used":         {nil, 2},
		"a refused use is no use":  {[]bench.Use{read, with(write, func(u *bench.Use) { u.Refused, u.Expected = 401, "early" })}, 1},
		"Gardener's use is no use": {[]bench.Use{read, with(write, func(u *bench.Use) { u.Access, u.Expected = bench.AccessGardeners, "a call" })}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			grants := grantsOf("seed", []client.Object{
				&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"one"}},
				}},
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "here"}, Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
				}},
			})
			result := compare(grants, test.uses)
			g.Expect(result.wrong()).To(Equal(test.wrong))
			var out bytes.Buffer
			result.print(&out)
			g.Expect(out.String()).To(ContainSubstring("CLUSTER"))
		})
	}
}
