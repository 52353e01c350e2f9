// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

const (
	fail   = admissionregistrationv1.Fail
	ignore = admissionregistrationv1.Ignore

	hookName = "a.example.com"
	policy   = hook.FieldFailurePolicy
	timeout  = hook.FieldTimeoutSeconds
	guard    = v1alpha1.FieldManager

	stabilization = 20 * time.Second
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	own    = hook.Values{Policy: fail, Timeout: 10}
	opened = hook.Values{Policy: ignore, Timeout: 3}
)

// shoot returns what decisions share, in a cycle that gardenlet began.
func shoot(p phase.Phase, change ...func(*decide.Shoot)) decide.Shoot {
	in := decide.Shoot{
		Now: now, Phase: p, MayOpenNew: true,
		Settings: decide.Settings{OpenValidating: 3, OpenMutating: 1, Stabilization: stabilization},
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func call(in *decide.Shoot)                  { in.Call = true }
func giveUp(in *decide.Shoot)                { in.GiveUp = true }
func pastDeadline(in *decide.Shoot)          { in.DeadlinePassed = true }
func hibernated(in *decide.Shoot)            { in.IsHibernated = true }
func byForce(in *decide.Shoot)               { in.Settings.RestoreByForce = true }
func reportMode(in *decide.Shoot)            { in.Settings.Report = true }
func withoutCycle(in *decide.Shoot)          { in.MayOpenNew = false }
func at(d time.Duration) func(*decide.Shoot) { return func(in *decide.Shoot) { in.Now = now.Add(d) } }

// subject returns a hook in scope that nobody has touched.
func subject(values hook.Values, change ...func(*decide.Subject)) decide.Subject {
	h := hook.Hook{Name: hookName, Values: values, Service: &hook.Service{Namespace: "hooks", Name: "hook", Port: 443}}
	s := decide.Subject{
		Configuration: hook.Configuration{
			Kind: hook.Validating, Name: "cfg", UID: "uid-1", ResourceVersion: "7", Hooks: []hook.Hook{h},
		},
		Hook: &h, ConfigurationExists: true, Scope: scope.Verdict{InScope: true, Reason: scope.InScope, Reportable: true},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func verdict(state backend.State, members ...string) func(*decide.Subject) {
	return func(s *decide.Subject) {
		s.Verdict = &backend.Verdict{State: state, Reason: "Because", Message: "because", Members: members}
	}
}

var (
	ready    = verdict(backend.Ready)
	notReady = verdict(backend.NotReady)
	unknown  = verdict(backend.Unknown)
)

// readyFor is a ready verdict that has been one for that long.
func readyFor(d time.Duration) func(*decide.Subject) {
	return func(s *decide.Subject) {
		ready(s)
		s.Memory = decide.Memory{ReadySince: now.Add(-d), Seen: now.Add(-time.Second), State: backend.Ready}
	}
}

// onRecord records own as the original of a hook that was opened a minute ago.
func onRecord(change ...func(*v1alpha1.HookRecord)) func(*decide.Subject) {
	return func(s *decide.Subject) {
		rec := record.New(s.Configuration, *s.Hook)
		rec.Original = own.Original()
		rec.FormerOwners = []v1alpha1.FieldOwner{helm(policy, timeout)}
		rec.Opened = &metav1.Time{Time: now.Add(-time.Minute)}
		for _, c := range change {
			c(&rec)
		}
		s.Record = &rec
	}
}

func helm(fields ...string) v1alpha1.FieldOwner {
	return v1alpha1.FieldOwner{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, Fields: fields}
}

func kubectl(fields ...string) v1alpha1.FieldOwner {
	return v1alpha1.FieldOwner{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, Fields: fields}
}

func original(p admissionregistrationv1.FailurePolicyType, t int32) func(*v1alpha1.HookRecord) {
	return func(r *v1alpha1.HookRecord) {
		r.Original = v1alpha1.Original{FailurePolicy: p, TimeoutSeconds: t}
	}
}

func judged(state backend.State) func(*v1alpha1.HookRecord) {
	return func(r *v1alpha1.HookRecord) { r.Verdict = string(state) }
}

func neverOpened(r *v1alpha1.HookRecord) { r.Opened = nil }

func returned(ago time.Duration) func(*v1alpha1.HookRecord) {
	return func(r *v1alpha1.HookRecord) {
		r.Returned, r.ReturnedBy = &metav1.Time{Time: now.Add(-ago)}, v1alpha1.ReturnedByGuard
	}
}

func reopened(times int) func(*v1alpha1.HookRecord) {
	return func(r *v1alpha1.HookRecord) { r.Reopened = times }
}

// owned makes a manager the owner of fields of the hook.
func owned(manager string, fields ...string) func(*decide.Subject) {
	return func(s *decide.Subject) {
		op := metav1.ManagedFieldsOperationUpdate
		if manager == "helm" {
			op = metav1.ManagedFieldsOperationApply
		}
		s.Configuration.ManagedFields = append(s.Configuration.ManagedFields, managedFields(manager, op, map[string][]string{hookName: fields}))
	}
}

// opens makes the guard the owner of both fields, as it is after an open.
var opens = owned(guard, policy, timeout)

func managedFields(manager string, op metav1.ManagedFieldsOperationType, hooks map[string][]string) metav1.ManagedFieldsEntry {
	webhooks := map[string]any{}
	for name, fields := range hooks {
		element := map[string]any{}
		for _, f := range fields {
			element["f:"+f] = map[string]any{}
		}
		key, _ := json.Marshal(map[string]string{"name": name})
		webhooks["k:"+string(key)] = element
	}
	data, _ := json.Marshal(map[string]any{"f:webhooks": webhooks})
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(data))}
}

// annotated writes our annotation with that original, in the configuration too.
func annotated(v hook.Values) func(*decide.Subject) {
	return func(s *decide.Subject) {
		o := v.Original()
		data, _ := json.Marshal(v1alpha1.Originals{Hooks: map[string]v1alpha1.Original{hookName: o}})
		all := maps.Clone(s.Configuration.Annotations)
		if all == nil {
			all = map[string]string{}
		}
		all[v1alpha1.OriginalsAnnotation] = string(data)
		s.Configuration.Annotations, s.Annotated = all, &o
	}
}

func outOfScope(s *decide.Subject) {
	s.Scope = scope.Verdict{Reason: scope.LeaveLabel, Message: "left", Reportable: true}
}

func urlBackend(s *decide.Subject) {
	h := *s.Hook
	h.Service, h.URL = nil, "https://hooks.example.com"
	s.Hook, s.Configuration.Hooks, s.Verdict = &h, []hook.Hook{h}, nil
}

// expectation is what a case wants; zero fields of it are wanted, too.
type expectation struct {
	state    decide.State
	action   decide.Action
	to       hook.Values
	recorded bool
}

type decision struct {
	name string
	in   decide.Shoot
	s    decide.Subject
	want expectation
}

func check(t *testing.T, cases []decision) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			got := decide.Decide(c.in, c.s)
			g.Expect(expectation{got.State, got.Action, got.To, got.Record != nil}).To(Equal(c.want), "%s: %s", got.Reason, got.Message)
			if got.Action == decide.OpenIt || got.Action == decide.RestoreIt {
				g.Expect(got.From).To(Equal(c.s.Hook.Values))
				g.Expect(got.Record).NotTo(BeNil(), "nothing is changed without a record")
			}
		})
	}
}

var (
	opensIt    = expectation{decide.Open, decide.OpenIt, opened, true}
	heldOpen   = expectation{state: decide.Open, recorded: true}
	restoresIt = expectation{decide.Returning, decide.RestoreIt, own, true}
	releasesIt = expectation{state: decide.Returning, action: decide.ReleaseIt, recorded: true}
	leftAlone  = expectation{state: decide.Enforced}
	reverted   = expectation{state: decide.Reverted, recorded: true}
	watched    = expectation{state: decide.Watched, recorded: true}
	done       = expectation{state: decide.Done, recorded: true}
)

func (e expectation) in(s decide.State) expectation { e.state = s; return e }
func (e expectation) recordedToo() expectation      { e.recorded = true; return e }

type apiPolicy = admissionregistrationv1.FailurePolicyType

type recordType = v1alpha1.HookRecord

func liveCluster() backend.Cluster {
	return backend.Cluster{
		Now: now, Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}}, NodeLeases: map[string]time.Time{"node": now},
	}
}
