// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// grant is one verb on one resource, and one name if names are granted.
type grant struct {
	cluster, namespace, verb, group, resource, name string // empty namespace or name: all
}

// grantsOf are the rights in the Roles and ClusterRoles among the objects.
func grantsOf(cluster string, objects []client.Object) (grants []grant) {
	for _, object := range objects {
		var rules []rbacv1.PolicyRule
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			rules = o.Rules
		}
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							grants = append(grants, grant{cluster, object.GetNamespace(), verb, group, resource, name})
						}
					}
				}
			}
		}
	}
	slices.SortFunc(grants, func(a, b grant) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource),
			cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.verb, b.verb))
	})
	return slices.Compact(grants)
}

func (g grant) covers(u bench.Use) bool {
	return g.cluster == u.Cluster && g.verb == u.Verb && g.group == u.Group && g.resource == u.Resource &&
		(g.namespace == "" || g.namespace == u.Namespace) && (g.name == "" || g.name == u.Name)
}

// comparison of what was granted with what was used.
type comparison struct {
	grants []grant
	used   map[grant]int
	// refused requests were not granted; expected says of some why that is as it should be.
	refused []bench.Use
	// elsewhere are requests that were granted by none of our rules.
	elsewhere []bench.Use
	// gardeners are requests by Gardener's own access.
	gardeners []bench.Use
}

func compare(grants []grant, uses []bench.Use) comparison {
	c := comparison{grants: grants, used: map[grant]int{}}
	for _, u := range uses {
		switch {
		case u.Refused != 0:
			c.refused = append(c.refused, u)
		case u.Access == bench.AccessGardeners:
			c.gardeners = append(c.gardeners, u)
		case u.Resource != "" && !c.count(u):
			c.elsewhere = append(c.elsewhere, u)
		}
	}
	return c
}

// count notes a use at the rights that cover it.
func (c *comparison) count(u bench.Use) (covered bool) {
	for _, g := range c.grants {
		if g.covers(u) {
			c.used[g] += u.Count
			covered = true
		}
	}
	return covered
}

func (c *comparison) wrong() int {
	wrong := len(c.elsewhere)
	for _, g := range c.grants {
		if c.used[g] == 0 {
			wrong++
		}
	}
	for _, u := range slices.Concat(c.refused, c.gardeners) {
		if u.IsWrong() {
			wrong++
		}
	}
	return wrong
}

func (c *comparison) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tVERB\tRESOURCE\tWHERE\tNAME\tUSED")
	for _, g := range c.grants {
		used := fmt.Sprint(c.used[g])
		if c.used[g] == 0 {
			used = "NEVER"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", g.cluster, g.verb, strings.Trim(g.resource+"."+g.group, "."),
			orAll(g.namespace), orAll(g.name), used)
	}
	_ = table.Flush()
	list(out, "Requests that were granted, but not by these rights", c.elsewhere, func(bench.Use) string { return "WRONG" })
	verdict := func(u bench.Use) string {
		if u.IsWrong() {
			return "WRONG"
		}
		return u.Expected
	}
	list(out, "Requests that were refused", c.refused, verdict)
	list(out, "Requests by Gardener's own access to the Shoot", c.gardeners, verdict)
}

// list prints kinds of requests with a verdict each. What differs in names alone is one kind.
func list(out io.Writer, title string, uses []bench.Use, verdict func(bench.Use) string) {
	if len(uses) == 0 {
		return
	}
	counts := map[string]int{}
	for _, u := range uses {
		code := ""
		if u.Refused != 0 {
			code = fmt.Sprint(u.Refused)
		}
		counts[strings.Join([]string{u.Cluster, u.Verb, strings.Trim(cmp.Or(u.Resource, u.Name)+"."+u.Group, "."), code, verdict(u)}, "\t")] += u.Count
	}
	var lines []string
	for line, count := range counts {
		lines = append(lines, fmt.Sprintf("  %s\t%d\n", line, count))
	}
	slices.Sort(lines)
	fmt.Fprintf(out, "\n%s:\n", title)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprint(table, line)
	}
	_ = table.Flush()
}

func orAll(s string) string { return cmp.Or(s, "*") }
