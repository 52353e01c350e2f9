// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

const (
	apply  = metav1.ManagedFieldsOperationApply
	update = metav1.ManagedFieldsOperationUpdate
)

func managed(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "admissionregistration.k8s.io/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// owned is the fieldsV1 of an owner of the given fields of hooks: "a:failurePolicy,timeoutSeconds b:timeoutSeconds".
func owned(t *testing.T, text string) string {
	t.Helper()
	hooks := map[string]any{}
	for _, h := range strings.Fields(text) {
		name, fields, _ := strings.Cut(h, ":")
		set := map[string]any{".": map[string]any{}}
		for _, f := range strings.Split(fields, ",") {
			set["f:"+f] = map[string]any{}
		}
		hooks[`k:{"name":"`+name+`"}`] = set
	}
	data, err := json.Marshal(map[string]any{"f:webhooks": hooks})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func managedBy(entries ...metav1.ManagedFieldsEntry) hook.Configuration {
	o := validating(entry("a", values(fail, 10)), entry("b", values(fail, 10)), entry("open", values(ignore, 3)))
	o.ManagedFields = entries
	return hook.FromValidating(o)
}

func TestOwners(t *testing.T) {
	both, policy, timeout := []string{"failurePolicy", "timeoutSeconds"}, []string{"failurePolicy"}, []string{"timeoutSeconds"}
	v1beta1 := managed("kubectl", update, owned(t, "a:failurePolicy"))
	v1beta1.APIVersion = "admissionregistration.k8s.io/v1beta1"
	status := managed("kubectl", update, owned(t, "a:timeoutSeconds"))
	status.Subresource = "status"

	for _, tc := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    []v1alpha1.FieldOwner
	}{
		{"nobody, on a very old object", nil, nil},
		{"one manager of both fields", []metav1.ManagedFieldsEntry{managed("helm", apply, owned(t, "a:failurePolicy,timeoutSeconds,rules"))},
			[]v1alpha1.FieldOwner{{Manager: "helm", Operation: apply, Fields: both}}},
		{"two managers of a field each", []metav1.ManagedFieldsEntry{
			managed("helm", apply, owned(t, "a:failurePolicy")), managed("kubectl-edit", update, owned(t, "a:timeoutSeconds"))},
			[]v1alpha1.FieldOwner{{Manager: "helm", Operation: apply, Fields: policy}, {Manager: "kubectl-edit", Operation: update, Fields: timeout}}},
		{"two managers of the same field", []metav1.ManagedFieldsEntry{
			managed("helm", apply, owned(t, "a:failurePolicy")), managed("flux", apply, owned(t, "a:failurePolicy"))},
			[]v1alpha1.FieldOwner{{Manager: "helm", Operation: apply, Fields: policy}, {Manager: "flux", Operation: apply, Fields: policy}}},
		{"the guard is not named", []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager, update, owned(t, "a:failurePolicy"))}, nil},
		{"owners of another hook or of other fields are not named", []metav1.ManagedFieldsEntry{
			managed("helm", apply, owned(t, "b:failurePolicy")), managed("ca", update, owned(t, "a:clientConfig"))}, nil},
		{"a manager that writes in two API versions is one owner", []metav1.ManagedFieldsEntry{
			managed("kubectl", update, owned(t, "a:timeoutSeconds")), v1beta1},
			[]v1alpha1.FieldOwner{{Manager: "kubectl", Operation: update, Fields: both}}},
		{"a manager of an object and of its subresource is two owners", []metav1.ManagedFieldsEntry{
			managed("kubectl", update, owned(t, "a:failurePolicy")), status},
			[]v1alpha1.FieldOwner{
				{Manager: "kubectl", Operation: update, Fields: policy},
				{Manager: "kubectl", Operation: update, Subresource: "status", Fields: timeout}}},
		{"an entry without fields or with other content does no harm", []metav1.ManagedFieldsEntry{
			{Manager: "x"}, managed("y", update, `[]`), managed("z", update, `{"f:webhooks":null}`)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(managedBy(tc.entries...).Owners("a")).To(Equal(tc.want))
		})
	}
}

func TestOurs(t *testing.T) {
	for _, tc := range []struct {
		name            string
		entries         []metav1.ManagedFieldsEntry
		policy, timeout bool
		entry           bool
	}{
		{"nothing on an object nobody manages", nil, false, false, false},
		{"nothing if somebody else owns the fields", []metav1.ManagedFieldsEntry{managed("helm", apply, owned(t, "a:failurePolicy,timeoutSeconds"))}, false, false, false},
		{"both", []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager, update, owned(t, "a:failurePolicy,timeoutSeconds"))}, true, true, true},
		{"the timeout alone", []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager, update, owned(t, "a:timeoutSeconds"))}, false, true, true},
		{"one field in each of two entries", []metav1.ManagedFieldsEntry{
			managed(v1alpha1.FieldManager, update, owned(t, "a:timeoutSeconds")), managed(v1alpha1.FieldManager, apply, owned(t, "a:failurePolicy"))}, true, true, true},
		{"an entry, but of another hook", []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager, update, owned(t, "b:timeoutSeconds"))}, false, false, true},
		{"a manager whose name begins like ours is another one", []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager+"-claim", update, owned(t, "a:timeoutSeconds"))}, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := managedBy(tc.entries...)
			policy, timeout := c.Ours("a")
			g.Expect([]bool{policy, timeout, c.HasOurEntry()}).To(Equal([]bool{tc.policy, tc.timeout, tc.entry}))
		})
	}
}

func TestReleasePatch(t *testing.T) {
	const guard = v1alpha1.FieldManager
	helm := []v1alpha1.FieldOwner{{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy", "timeoutSeconds"}}}
	bare := `{"f:webhooks":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`

	for _, tc := range []struct {
		name   string
		before []metav1.ManagedFieldsEntry
		owners map[string][]v1alpha1.FieldOwner
		// after has one line for each entry: manager, and what it owns.
		after []string
	}{
		{"the former owner owns both fields again",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed(guard, update, owned(t, "a:failurePolicy,timeoutSeconds"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm a:failurePolicy,timeoutSeconds"}},
		{"entries in front of ours and behind it stay what they are",
			[]metav1.ManagedFieldsEntry{managed(guard, update, owned(t, "a:failurePolicy")), managed("ca", update, owned(t, "b:timeoutSeconds")), managed("helm", apply, bare)},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"ca b:timeoutSeconds", "helm a:failurePolicy"}},
		{"only what the guard owns is handed back: the rest was taken by somebody else",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed("admin", update, owned(t, "a:failurePolicy")), managed(guard, update, owned(t, "a:timeoutSeconds"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm a:timeoutSeconds", "admin a:failurePolicy"}},
		{"the parents are made when the owner's entry has none",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, `{"f:metadata":{"f:labels":{}}}`), managed(guard, update, owned(t, "a:failurePolicy b:timeoutSeconds"))},
			map[string][]v1alpha1.FieldOwner{"a": helm, "b": helm},
			[]string{"helm a:failurePolicy b:timeoutSeconds"}},
		{"each of several owners gets its own field",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed("kubectl-edit", update, `{}`), managed(guard, update, owned(t, "a:failurePolicy,timeoutSeconds"))},
			map[string][]v1alpha1.FieldOwner{"a": {
				{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy"}},
				{Manager: "kubectl-edit", Operation: update, Fields: []string{"timeoutSeconds"}}}},
			[]string{"helm a:failurePolicy", "kubectl-edit a:timeoutSeconds"}},
		{"an owner is not taken for one of the same name and another operation",
			[]metav1.ManagedFieldsEntry{managed("helm", update, `{}`), managed(guard, update, owned(t, "a:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm"}},
		{"an owner whose entry is gone, or says nothing, is passed over",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, `[]`), managed(guard, update, owned(t, "a:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": append([]v1alpha1.FieldOwner{{Manager: "gone", Operation: update, Fields: []string{"failurePolicy"}}}, helm...)},
			[]string{"helm"}},
		{"an owner that took its field back already is not touched",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, owned(t, "a:failurePolicy,timeoutSeconds")), managed(guard, update, owned(t, "a:failurePolicy,timeoutSeconds"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm a:failurePolicy,timeoutSeconds"}},
		{"fields nobody owned become nobody's",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed(guard, update, owned(t, "a:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": nil},
			[]string{"helm"}},
		{"all entries of the guard go, whatever their operation",
			[]metav1.ManagedFieldsEntry{managed(guard, apply, owned(t, "a:timeoutSeconds")), managed("helm", apply, bare), managed(guard, update, owned(t, "a:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm a:failurePolicy,timeoutSeconds"}},
		{"an entry of the guard without hook fields goes too",
			[]metav1.ManagedFieldsEntry{managed(guard, update, `{"f:metadata":{}}`)}, nil, nil},
		{"fields of an entry that is not in the configuration any more hold nothing back",
			[]metav1.ManagedFieldsEntry{managed(guard, update, owned(t, "a:failurePolicy renamed:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": nil}, nil},
		{"a hook that is not named but may be open stays the guard's",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed(guard, update, owned(t, "a:failurePolicy open:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm a:failurePolicy", guard + " open:failurePolicy"}},
		{"a hook that is named is released although it stands at Ignore",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed(guard, update, owned(t, "open:timeoutSeconds"))},
			map[string][]v1alpha1.FieldOwner{"open": helm},
			[]string{"helm open:timeoutSeconds"}},
		{"a hook that is not named and cannot be open holds nothing back",
			[]metav1.ManagedFieldsEntry{managed("helm", apply, bare), managed(guard, update, owned(t, "a:failurePolicy b:failurePolicy"))},
			map[string][]v1alpha1.FieldOwner{"a": helm},
			[]string{"helm a:failurePolicy"}},
		{"of two entries one goes and one stays",
			[]metav1.ManagedFieldsEntry{managed(guard, apply, owned(t, "a:timeoutSeconds open:timeoutSeconds")), managed(guard, update, owned(t, "a:failurePolicy"))},
			nil, []string{guard + " open:timeoutSeconds"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := managedBy(tc.before...)
			p, ok, err := hook.ReleasePatch(c, tc.owners)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ok).To(BeTrue())
			o := validating()
			o.ManagedFields = tc.before
			var after metav1.ObjectMeta
			patched(g, o, p, &struct {
				Metadata *metav1.ObjectMeta `json:"metadata"`
			}{&after})
			g.Expect(ownedBy(after.ManagedFields)).To(Equal(tc.after))
		})
	}
}

func ownedBy(entries []metav1.ManagedFieldsEntry) []string {
	var lines []string
	for _, e := range entries {
		line := e.Manager
		for _, name := range []string{"a", "b", "open"} {
			for _, o := range (hook.Configuration{ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "any", FieldsV1: e.FieldsV1,
			}}}).Owners(name) {
				line += " " + name + ":" + strings.Join(o.Fields, ",")
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestReleasePatchWithNothingToRelease(t *testing.T) {
	for _, tc := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
	}{
		{"there is no entry at all", nil},
		{"there is no entry of the guard", []metav1.ManagedFieldsEntry{managed("helm", apply, owned(t, "a:failurePolicy"))}},
		{"the guard's entry is about a hook that may be open", []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager, update, owned(t, "open:failurePolicy"))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p, ok, err := hook.ReleasePatch(managedBy(tc.entries...), map[string][]v1alpha1.FieldOwner{
				"a": {{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy"}}}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ok).To(BeFalse())
			g.Expect(p.Empty()).To(BeTrue())
		})
	}
}

func TestReleasePatchIsRefusedWhenEntriesMoved(t *testing.T) {
	helm, guard := managed("helm", apply, `{}`), managed(v1alpha1.FieldManager, update, owned(t, "a:failurePolicy"))
	p, _, err := hook.ReleasePatch(managedBy(helm, guard), map[string][]v1alpha1.FieldOwner{
		"a": {{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy"}}}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	otherOperation := guard
	otherOperation.Operation = apply
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{
		"the order changed":                       {guard, helm},
		"the owner's entry is gone":               {guard},
		"another manager stands where helm stood": {managed("flux", apply, `{}`), guard},
		"our entry is of another operation":       {helm, otherOperation},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := validating()
			o.ManagedFields = entries
			_, err := applyJSON(g, o, p)
			g.Expect(err).To(HaveOccurred())
		})
	}
}

// Today's names need no escapes; what an old API server accepted may.
func TestReleasePatchEscapesNames(t *testing.T) {
	g := NewWithT(t)
	const name = `a/b~1c"d`
	o := validating(entry(name, values(fail, 10)))
	element, err := json.Marshal(`k:{"name":"a/b~1c\"d"}`)
	g.Expect(err).NotTo(HaveOccurred())
	o.ManagedFields = []metav1.ManagedFieldsEntry{
		managed("helm", apply, `{"f:webhooks":{`+string(element)+`:{"f:name":{}}}}`),
		managed(v1alpha1.FieldManager, update, `{"f:webhooks":{`+string(element)+`:{"f:failurePolicy":{}}}}`),
	}
	p, ok, err := hook.ReleasePatch(hook.FromValidating(o), map[string][]v1alpha1.FieldOwner{
		name: {{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy"}}}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeTrue())
	var after struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	patched(g, o, p, &after)
	g.Expect(after.Metadata.ManagedFields).To(HaveLen(1))
	g.Expect(after.Metadata.ManagedFields[0].FieldsV1.GetRawBytes()).To(MatchJSON(`{"f:webhooks":{` + string(element) + `:{"f:name":{},"f:failurePolicy":{}}}}`))
}

func applyJSON(g *WithT, o any, p hook.Patch) ([]byte, error) {
	document, err := json.Marshal(o)
	g.Expect(err).NotTo(HaveOccurred())
	patch, err := jsonpatch.DecodePatch(p.Data)
	g.Expect(err).NotTo(HaveOccurred())
	return patch.Apply(document)
}

func TestManagers(t *testing.T) {
	g := NewWithT(t)
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("a", `{"f:metadata":{"f:labels":{".":{},"f:x":{}}}}`),
		entry("b", `{"f:metadata":{"f:labels":{".":{}}}}`),
		entry("a", `{"f:metadata":{"f:labels":{"f:x":{}}}}`),
		entry("c", `{"f:metadata":{"f:labels":{"f:x":{}}}}`),
		{Manager: "d"},
		entry("e", `not JSON`),
	}
	g.Expect(hook.Managers(entries, "f:metadata", "f:labels", "f:x")).To(Equal([]string{"a", "c"}))
	g.Expect(hook.Managers(entries, "f:metadata", "f:labels")).To(Equal([]string{"a", "b", "c"}))
	g.Expect(hook.Managers(entries, "f:data")).To(BeEmpty())
}
