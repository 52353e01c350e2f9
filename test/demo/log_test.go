// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one   = Hook{Kind: bench.KindValidating, Configuration: "c", Hook: "one"}

	closed = hook.Values{Policy: admissionregistrationv1.Fail, Timeout: 10}
	open   = hook.Values{Policy: admissionregistrationv1.Ignore, Timeout: 3}
)

func second(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

// written is the log's entry of a write of configuration c, in second n and at resource version version; nil values: the
// configuration has no hook.
func written(n int, version, agent string, values *hook.Values, change ...func(*admissionregistrationv1.ValidatingWebhookConfiguration)) auditv1.Event {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: version}}
	if values != nil {
		c.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "one", FailurePolicy: &values.Policy, TimeoutSeconds: &values.Timeout}}
	}
	for _, f := range change {
		f(c)
	}
	raw, _ := json.Marshal(c)
	return auditv1.Event{
		Verb: "patch", UserAgent: agent, User: authenticationv1.UserInfo{Username: kyvernoUsers + "a"},
		ObjectRef:                &auditv1.ObjectReference{Resource: "validatingwebhookconfigurations", Name: "c"},
		ResponseStatus:           &metav1.Status{Code: http.StatusOK},
		ResponseObject:           &runtime.Unknown{Raw: raw},
		RequestReceivedTimestamp: metav1.NewMicroTime(second(n)), StageTimestamp: metav1.NewMicroTime(second(n)),
	}
}

const guardAgent, kyvernoAgent = bench.ControllerAgent + "v1", "kyverno"

func TestChanges(t *testing.T) {
	refused := written(9, "9", guardAgent, &open)
	refused.ResponseStatus.Code = http.StatusConflict
	deleted := written(9, "", kyvernoAgent, nil)
	deleted.Verb, deleted.ResponseObject = "delete", &runtime.Unknown{Raw: []byte(`{"kind":"Status"}`)}
	other := written(9, "9", guardAgent, &open)
	other.ObjectRef = &auditv1.ObjectReference{Resource: "pods"}

	created := change{at: second(1), hook: one, to: &closed, by: byKyverno}
	opened := change{at: second(2), hook: one, from: &closed, to: &open, by: byGuard}
	for _, tc := range []struct {
		name   string
		events []auditv1.Event
		want   []change
	}{
		{"a creation and an open", []auditv1.Event{written(1, "1", kyvernoAgent, &closed), written(2, "2", guardAgent, &open)}, []change{created, opened}},
		{"by version, not by time", []auditv1.Event{written(2, "10", guardAgent, &open), written(1, "9", kyvernoAgent, &closed)}, []change{created, opened}},
		{"a write without a change", []auditv1.Event{written(1, "1", kyvernoAgent, &closed), written(2, "2", kyvernoAgent, &closed)}, []change{created}},
		{"a refused write", []auditv1.Event{written(1, "1", kyvernoAgent, &closed), refused}, []change{created}},
		{"another resource", []auditv1.Event{written(1, "1", kyvernoAgent, &closed), other}, []change{created}},
		{"an entry that is taken out", []auditv1.Event{written(1, "1", kyvernoAgent, &closed), written(2, "2", kyvernoAgent, nil)}, []change{created, {at: second(2), hook: one, from: &closed, by: byKyverno}}},
		{"a deletion", []auditv1.Event{written(1, "1", kyvernoAgent, &closed), deleted}, []change{created, {at: second(9), hook: one, from: &closed, by: byKyverno}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := changes(tc.events)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestRestorers(t *testing.T) {
	originals := map[Hook]hook.Values{one: closed}
	back := func(n int, by string) change {
		return change{at: second(n), hook: one, from: &open, to: &closed, by: by}
	}
	for _, tc := range []struct {
		name string
		all  []change
		want string
	}{
		{"the last one counts", []change{back(5, byKyverno), {at: second(6), hook: one, from: &closed, to: &open, by: byGuard}, back(7, byGuard)}, byGuard},
		{"at the very moment", []change{back(3, byKyverno)}, byKyverno},
		{"before that moment", []change{back(2, byKyverno)}, ""},
		{"to other values", []change{{at: second(5), hook: one, from: &open, to: &hook.Values{Policy: admissionregistrationv1.Fail, Timeout: 9}, by: byGuard}}, ""},
		{"another hook", []change{{at: second(5), hook: Hook{Hook: "two"}, from: &open, to: &closed, by: byGuard}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(restorers(tc.all, []Hook{one}, originals, second(3))[one].by).To(Equal(tc.want))
		})
	}
}

func TestForeignWrites(t *testing.T) {
	before := written(1, "1", kyvernoAgent, &closed)
	type configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	for _, tc := range []struct {
		name   string
		event  auditv1.Event
		counts bool
	}{
		{"policy and timeout by the guard", written(2, "2", guardAgent, &open), false},
		{"its annotation and field ownership", written(2, "2", guardAgent, &open, func(c *configuration) {
			c.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: "{}"}
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager}}
			c.Generation = 2
		}), false},
		{"the label of a claim", written(2, "2", guardAgent, &closed, func(c *configuration) {
			c.Labels = map[string]string{v1alpha1.ClaimLabel: v1alpha1.ClaimValue}
		}), false},
		{"another label", written(2, "2", guardAgent, &closed, func(c *configuration) { c.Labels = map[string]string{"a": "b"} }), true},
		{"another annotation", written(2, "2", guardAgent, &open, func(c *configuration) { c.Annotations = map[string]string{"a": "b"} }), true},
		{"a caBundle", written(2, "2", guardAgent, &open, func(c *configuration) { c.Webhooks[0].ClientConfig.CABundle = []byte("a") }), true},
		{"a rule", written(2, "2", guardAgent, &open, func(c *configuration) { c.Webhooks[0].MatchPolicy = ptr.To(admissionregistrationv1.Exact) }), true},
		{"a rule by its owner", written(2, "2", kyvernoAgent, &open, func(c *configuration) { c.Webhooks[0].MatchPolicy = ptr.To(admissionregistrationv1.Exact) }), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := foreignWrites([]auditv1.Event{before, tc.event})
			g.Expect(err).NotTo(HaveOccurred())
			if tc.counts {
				g.Expect(found).To(HaveLen(1))
			} else {
				g.Expect(found).To(BeEmpty())
			}
		})
	}
	created := written(1, "1", guardAgent, &open)
	found, err := foreignWrites([]auditv1.Event{created})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(found).To(HaveLen(1), "the guard creates no configuration")
}

func TestWritesOf(t *testing.T) {
	refused := written(4, "4", guardAgent, &open)
	refused.ResponseStatus.Code = http.StatusConflict
	NewWithT(t).Expect(writesOf([]auditv1.Event{
		written(1, "1", guardAgent, &open), written(2, "2", guardAgent, &open), written(3, "3", kyvernoAgent, &open), refused,
	}, second(2))).To(Equal(Writes{Max: 2, Each: map[string]int{"validatingwebhookconfigurations c": 2}}))
}

func TestOpenIn(t *testing.T) {
	mutating := Hook{Kind: bench.KindMutating, Configuration: "c", Hook: "one"}
	values := func(policy admissionregistrationv1.FailurePolicyType, timeout int32) hook.Values {
		return hook.Values{Policy: policy, Timeout: timeout}
	}
	for _, tc := range []struct {
		name          string
		hook          Hook
		original, now hook.Values
		open          bool
	}{
		{"Ignore and 3 s", one, closed, open, true},
		{"Ignore and 4 s", one, closed, values("Ignore", 4), false},
		{"Fail and 3 s", one, closed, values("Fail", 3), false},
		{"Ignore and shorter, as its own was", one, values("Fail", 2), values("Ignore", 2), true},
		{"Ignore and short on its own", one, open, open, false},
		{"a mutating one with 1 s", mutating, closed, values("Ignore", 1), true},
		{"a mutating one with 2 s", mutating, closed, values("Ignore", 2), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got := openIn(map[Hook]hook.Values{tc.hook: tc.now}, map[Hook]hook.Values{tc.hook: tc.original})
			if tc.open {
				g.Expect(got).To(Equal([]Hook{tc.hook}))
			} else {
				g.Expect(got).To(BeEmpty())
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	refused := func(verb, resource, subresource string, code int32, text string) auditv1.Event {
		return auditv1.Event{
			Verb: verb, ObjectRef: &auditv1.ObjectReference{Resource: resource, Subresource: subresource},
			ResponseStatus: &metav1.Status{Code: code, Message: text},
		}
	}
	const failed, deniedText = `Internal error occurred: failed calling webhook "a"`, `admission webhook "b" denied the request`
	got := refusals([]auditv1.Event{
		refused("create", "pods", "", 500, failed), refused("create", "pods", "", 500, failed),
		refused("create", "pods", "eviction", 403, deniedText),
		refused("update", "pods", "", 409, "conflict"), refused("create", "nodes", "", 201, failed),
		{Verb: "get", ResponseStatus: &metav1.Status{Code: 500, Message: failed}},
	}, []bench.Blocked{
		{User: "a", Verb: "create", Resource: "pods", Text: failed, Count: 1},  // in the log, too
		{User: "a", Verb: "create", Resource: "nodes", Text: failed, Count: 3}, // not in the log
		{User: "b", Verb: "create", Resource: "nodes", Text: failed, Count: 2},
		{User: "a", Verb: "patch", Resource: "nodes", Text: "too many requests", Count: 1},
	})
	NewWithT(t).Expect(got).To(Equal([]Blocked{
		{Verb: "create", Resource: "nodes", Text: failed, Count: 5},
		{Verb: "create", Resource: "pods", Text: failed, Count: 2},
		{Verb: "create", Resource: "pods/eviction", Text: deniedText, Count: 1},
	}))
	NewWithT(t).Expect(json.Marshal(refusals(nil, nil))).To(MatchJSON("[]"), "a list, whoever reads it")
}

func TestAssess(t *testing.T) {
	difference := func(field, before, now string) []bench.Difference {
		return []bench.Difference{{HookID: bench.HookID(one), Field: field, Before: before, After: now}}
	}
	annotation := difference(bench.FieldAnnotation, "", "{}")
	for _, tc := range []struct {
		name                   string
		differences, leftovers []bench.Difference
		foreign, record        []string
		lost, changed, left    int
	}{
		{name: "nothing"},
		{name: "a policy", differences: difference(bench.FieldFailurePolicy, `"Fail"`, `"Ignore"`), lost: 1},
		{name: "a timeout", differences: difference(bench.FieldTimeoutSeconds, "10", "3"), lost: 1},
		{name: "a hook that is gone", differences: difference(bench.FieldPresence, "true", ""), lost: 1},
		{name: "a hook that is new", differences: difference(bench.FieldPresence, "", "true"), changed: 1},
		{name: "rules", differences: difference("rules", "[]", "[1]"), changed: 1},
		{name: "field ownership of others", differences: difference(bench.FieldManaged+"helm/Apply", "{}", ""), changed: 1},
		{name: "a caBundle that its owner wrote", differences: difference(bench.FieldCABundle, "a", "b")},
		{name: "a caBundle that the guard may have written", differences: difference(bench.FieldCABundle, "a", "b"), foreign: []string{"patch of c"}, changed: 2},
		{name: "our annotation, once", differences: annotation, leftovers: annotation, left: 1},
		{name: "a hook on record", record: []string{"on record: c"}, left: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			f := assess(tc.differences, tc.leftovers, tc.foreign, tc.record)
			g.Expect([]int{f.lost, f.changed, f.left}).To(Equal([]int{tc.lost, tc.changed, tc.left}))
			g.Expect(f.lines).To(HaveLen(tc.lost + tc.changed + tc.left))
		})
	}
}
