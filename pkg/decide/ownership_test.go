// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

func TestPerField(t *testing.T) {
	for _, c := range []struct {
		name    string
		s       decide.Subject
		want    hook.Values // original on record
		opensTo *hook.Values
	}{
		{"our values keep the recorded original", subject(opened, opens, onRecord()), own, nil},
		{"a foreign policy with our timeout keeps the recorded timeout",
			subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), owned("helm", policy), onRecord(original(ignore, 10))),
			hook.Values{Policy: fail, Timeout: 10}, &opened},
		{"a foreign timeout with our policy keeps the recorded policy",
			subject(hook.Values{Policy: ignore, Timeout: 7}, owned(guard, policy), owned("helm", timeout), onRecord()),
			hook.Values{Policy: fail, Timeout: 7}, &opened},
		{"a policy that another manager took at our value is its own now",
			subject(opened, owned(guard, timeout), owned("helm", policy), onRecord()), hook.Values{Policy: ignore, Timeout: 10}, nil},
		{"also with our annotation still there",
			subject(opened, owned(guard, timeout), owned("helm", policy), annotated(own), onRecord()), hook.Values{Policy: ignore, Timeout: 10}, nil},
		{"a timeout that another manager took at our value is its own now",
			subject(opened, owned(guard, policy), owned("helm", timeout), onRecord()), hook.Values{Policy: fail, Timeout: 3}, nil},
		{"both fields foreign", subject(hook.Values{Policy: fail, Timeout: 7}, owned("helm", policy, timeout), onRecord(original(ignore, 10))),
			hook.Values{Policy: fail, Timeout: 7}, &opened},
		{"a raised timeout is opened to the open timeout", subject(hook.Values{Policy: ignore, Timeout: 8}, owned(guard, policy), owned("helm", timeout),
			onRecord(original(fail, 2))), hook.Values{Policy: fail, Timeout: 8}, &opened},
		{"a lowered timeout below the open one stays", subject(hook.Values{Policy: ignore, Timeout: 2}, owned(guard, policy), owned("helm", timeout),
			onRecord()), hook.Values{Policy: fail, Timeout: 2}, nil},
		{"values at our open ones without any owner are ours: an object without managedFields", subject(opened, onRecord()), own, nil},
		{"other values without any owner are foreign", subject(hook.Values{Policy: ignore, Timeout: 4}, onRecord()),
			hook.Values{Policy: fail, Timeout: 4}, &opened},
		{"an open timeout that was configured otherwise then is ours, not a new original",
			subject(hook.Values{Policy: ignore, Timeout: 5}, opens, onRecord()), own, nil},
		{"fields that we share with another manager are ours",
			subject(opened, opens, owned("helm", policy, timeout), onRecord()), own, nil},
		{"a hook that somebody set to Ignore between our record and our open is its own",
			subject(opened, owned("helm", policy, timeout), onRecord(neverOpened)), opened, nil},
		{"also with our annotation, which is no record of who owns what",
			subject(opened, owned("helm", policy, timeout), annotated(own), onRecord(neverOpened)), opened, nil},
		{"a hook that was found open is ours whoever owns it", subject(opened, owned("helm", policy, timeout), onRecord(reopened(1))), own, nil},
		{"but only at our values", subject(hook.Values{Policy: ignore, Timeout: 7}, owned("helm", policy, timeout), onRecord(reopened(1))),
			hook.Values{Policy: fail, Timeout: 7}, &opened},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			notReady(&c.s)
			before := c.s.Record.DeepCopy()
			d := decide.Decide(shoot(phase.WakingUp), c.s)
			g.Expect(d.Record.Original).To(Equal(c.want.Original()))
			g.Expect(c.s.Record).To(Equal(before), "what is on record is the caller's")
			if c.opensTo == nil {
				g.Expect(d.Action).To(Equal(decide.None))
				return
			}
			g.Expect(d.Action).To(Equal(decide.OpenIt))
			g.Expect(d.To).To(Equal(*c.opensTo))
		})
	}
}

func TestFormerOwners(t *testing.T) {
	type owners = []v1alpha1.FieldOwner
	for _, c := range []struct {
		name   string
		values hook.Values
		owned  []func(*decide.Subject)
		want   owners
	}{
		{"stay while the fields are ours", opened, []func(*decide.Subject){opens}, owners{helm(policy, timeout)}},
		{"stay while the fields are nobody's", opened, nil, owners{helm(policy, timeout)}},
		{"of a taken field are those who took it, of the other those on record",
			hook.Values{Policy: fail, Timeout: 3}, []func(*decide.Subject){owned(guard, timeout), owned("kubectl-edit", policy)},
			owners{kubectl(policy), helm(timeout)}},
		{"of a taken timeout, too",
			hook.Values{Policy: ignore, Timeout: 7}, []func(*decide.Subject){owned(guard, policy), owned("kubectl-edit", timeout)},
			owners{kubectl(timeout), helm(policy)}},
		{"are those of today when both fields are taken", own, []func(*decide.Subject){owned("kubectl-edit", policy, timeout)}, owners{kubectl(policy, timeout)}},
		{"of a field that we share stay", opened, []func(*decide.Subject){opens, owned("kubectl-edit", policy)}, owners{helm(policy, timeout)}},
		{"of a timeout that we share stay", opened, []func(*decide.Subject){opens, owned("kubectl-edit", timeout)}, owners{helm(policy, timeout)}},
		{"are one owner when the one on record takes a field back",
			hook.Values{Policy: fail, Timeout: 3}, []func(*decide.Subject){owned(guard, timeout), owned("helm", policy)}, owners{helm(policy, timeout)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			s := subject(c.values, append(c.owned, onRecord(), ready)...)
			d := decide.Decide(shoot(phase.GoingDown), s)
			g.Expect(d.Record.FormerOwners).To(Equal(c.want))
			s.Record = d.Record
			g.Expect(decide.Decide(shoot(phase.GoingDown), s).Record.FormerOwners).To(Equal(c.want), "asking again changes nothing")
		})
	}
}

// TestFormerOwnersAreEntries: a manager has an entry for each operation and subresource.
func TestFormerOwnersAreEntries(t *testing.T) {
	g := NewWithT(t)
	entry := func(op metav1.ManagedFieldsOperationType, subresource, field string) v1alpha1.FieldOwner {
		return v1alpha1.FieldOwner{Manager: "helm", Operation: op, Subresource: subresource, Fields: []string{field}}
	}
	s := subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), owned("helm", policy), ready, onRecord(func(r *v1alpha1.HookRecord) {
		r.FormerOwners = []v1alpha1.FieldOwner{entry("Update", "", timeout), entry("Apply", "status", timeout)}
	}))
	d := decide.Decide(shoot(phase.GoingDown), s)
	g.Expect(d.Record.FormerOwners).To(Equal([]v1alpha1.FieldOwner{
		entry("Apply", "", policy), entry("Update", "", timeout), entry("Apply", "status", timeout),
	}))

	s = subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), owned("flux", policy), ready, onRecord(func(r *v1alpha1.HookRecord) {
		r.FormerOwners = []v1alpha1.FieldOwner{kubectl(policy, timeout)}
	}))
	d = decide.Decide(shoot(phase.GoingDown), s)
	g.Expect(d.Record.FormerOwners).To(Equal([]v1alpha1.FieldOwner{
		{Manager: "flux", Operation: "Update", Fields: []string{policy}}, kubectl(timeout),
	}))
}

func TestBackendFollowsTheHook(t *testing.T) {
	g := NewWithT(t)
	s := openHook(ready)
	s.Hook.Service = &hook.Service{Namespace: "hooks", Name: "renamed", Port: 8443}
	d := decide.Decide(shoot(phase.WakingUp), s)
	g.Expect(d.Record.Backend).To(Equal(&v1alpha1.Backend{Namespace: "hooks", Name: "renamed", Port: 8443}))
}
