// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

const (
	fail   = admissionregistrationv1.Fail
	ignore = admissionregistrationv1.Ignore
)

func values(policy admissionregistrationv1.FailurePolicyType, timeout int32) hook.Values {
	return hook.Values{Policy: policy, Timeout: timeout}
}

func entry(name string, v hook.Values) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		FailurePolicy:           ptr.To(v.Policy),
		TimeoutSeconds:          ptr.To(v.Timeout),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook"},
		},
	}
}

func validating(entries ...admissionregistrationv1.ValidatingWebhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: "cfg", UID: "uid-1", ResourceVersion: "7"},
		Webhooks:   entries,
	}
}

func TestFromConfiguration(t *testing.T) {
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	meta := metav1.ObjectMeta{
		Name: "cfg", UID: "uid-1", ResourceVersion: "7",
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "helm"}},
	}
	full := admissionregistrationv1.WebhookClientConfig{
		CABundle: []byte("pem"),
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: "hooks", Name: "hook", Port: ptr.To[int32](8443), Path: ptr.To("/mutate"),
		},
	}

	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}

	t.Run("a validating configuration is carried with all that is decided on", func(t *testing.T) {
		g := NewWithT(t)
		c := hook.FromValidating(&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "a.example.com", ClientConfig: full, Rules: rules, FailurePolicy: ptr.To(ignore), TimeoutSeconds: ptr.To[int32](7),
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1", "v1beta1"},
				NamespaceSelector: some, ObjectSelector: &metav1.LabelSelector{},
			}},
		})
		g.Expect(c).To(Equal(hook.Configuration{
			Kind: hook.Validating, Name: "cfg", UID: "uid-1", ResourceVersion: "7",
			Labels: meta.Labels, Annotations: meta.Annotations, ManagedFields: meta.ManagedFields,
			Hooks: []hook.Hook{{
				Name: "a.example.com", Values: values(ignore, 7),
				Service:  &hook.Service{Namespace: "hooks", Name: "hook", Port: 8443, Path: "/mutate"},
				CABundle: []byte("pem"), Rules: rules, ReviewVersions: []string{"v1", "v1beta1"},
				SideEffects:       admissionregistrationv1.SideEffectClassNoneOnDryRun,
				NamespaceSelector: some, ObjectSelector: &metav1.LabelSelector{},
			}},
		}))
	})

	t.Run("a mutating configuration is carried likewise, and says so", func(t *testing.T) {
		g := NewWithT(t)
		c := hook.FromMutating(&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.MutatingWebhook{
				{Name: "a.example.com", ClientConfig: full, Rules: rules, AdmissionReviewVersions: []string{"v1"}},
				{Name: "b.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://example.com/")}},
			},
		})
		g.Expect(c.Kind).To(Equal(hook.Mutating))
		g.Expect(c.Labels).To(Equal(meta.Labels))
		g.Expect(c.Hooks).To(Equal([]hook.Hook{
			{
				Name: "a.example.com", Mutating: true, Values: values(fail, 10), NoTimeout: true, Rules: rules, ReviewVersions: []string{"v1"},
				Service: &hook.Service{Namespace: "hooks", Name: "hook", Port: 8443, Path: "/mutate"}, CABundle: []byte("pem"),
			},
			{Name: "b.example.com", Index: 1, Mutating: true, Values: values(fail, 10), NoTimeout: true, URL: "https://example.com/"},
		}))
	})

	t.Run("absent fields have the API's defaults, and no backend is no failure", func(t *testing.T) {
		g := NewWithT(t)
		c := hook.FromValidating(&admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "a", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "s"}}},
			{Name: "b"},
		}})
		g.Expect(c.Hooks).To(Equal([]hook.Hook{
			{Name: "a", Values: values(fail, 10), NoTimeout: true, Service: &hook.Service{Name: "s", Port: 443}},
			{Name: "b", Index: 1, Values: values(fail, 10), NoTimeout: true},
		}))
	})

	t.Run("a configuration without entries has no hooks", func(t *testing.T) {
		NewWithT(t).Expect(hook.FromMutating(&admissionregistrationv1.MutatingWebhookConfiguration{}).Hooks).To(BeEmpty())
	})

	t.Run("all entries of one name are duplicates, the others are not", func(t *testing.T) {
		g := NewWithT(t)
		v := values(fail, 10)
		c := hook.FromValidating(validating(entry("a", v), entry("b", v), entry("a", values(ignore, 1))))
		var duplicates []bool
		for i, h := range c.Hooks {
			g.Expect(h.Index).To(Equal(i))
			duplicates = append(duplicates, h.Duplicate)
		}
		g.Expect(duplicates).To(Equal([]bool{true, false, true}))
		first, ok := c.Hook("a")
		g.Expect(ok).To(BeTrue())
		g.Expect(first.Values).To(Equal(v))
		_, ok = c.Hook("c")
		g.Expect(ok).To(BeFalse())
	})
}

func TestKey(t *testing.T) {
	g := NewWithT(t)
	c := hook.FromValidating(validating(entry("a.example.com", values(fail, 10))))
	g.Expect(c.Key(c.Hooks[0])).To(Equal("ValidatingWebhookConfiguration/cfg/uid-1/a.example.com"))
}

func TestOpenValues(t *testing.T) {
	for _, tc := range []struct {
		name     string
		mutating bool
		original hook.Values
		want     hook.Values
	}{
		{"a validating hook gets the timeout of its kind", false, values(fail, 10), values(ignore, 3)},
		{"a mutating hook gets the timeout of its kind", true, values(fail, 10), values(ignore, 1)},
		{"a timeout just above the open one is cut", false, values(fail, 4), values(ignore, 3)},
		{"an equal timeout stays", false, values(fail, 3), values(ignore, 3)},
		{"a shorter timeout is not made longer", false, values(fail, 2), values(ignore, 2)},
		{"a hook that is Ignore already but slow gets a short timeout", true, values(ignore, 30), values(ignore, 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(hook.OpenValues(hook.Hook{Mutating: tc.mutating}, tc.original, 3, 1)).To(Equal(tc.want))
		})
	}
}

func TestFromOriginal(t *testing.T) {
	for _, tc := range []struct {
		name     string
		original v1alpha1.Original
		bad      string
	}{
		{"Fail with the shortest timeout", v1alpha1.Original{FailurePolicy: fail, TimeoutSeconds: 1}, ""},
		{"Ignore with the longest timeout", v1alpha1.Original{FailurePolicy: ignore, TimeoutSeconds: 30}, ""},
		{"a timeout of zero", v1alpha1.Original{FailurePolicy: fail, TimeoutSeconds: 0}, "timeoutSeconds"},
		{"a negative timeout", v1alpha1.Original{FailurePolicy: fail, TimeoutSeconds: -1}, "timeoutSeconds"},
		{"a timeout of 31 s", v1alpha1.Original{FailurePolicy: fail, TimeoutSeconds: 31}, "timeoutSeconds"},
		{"no policy", v1alpha1.Original{TimeoutSeconds: 10}, "failurePolicy"},
		{"a policy in lower case", v1alpha1.Original{FailurePolicy: "fail", TimeoutSeconds: 10}, "failurePolicy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			v, err := hook.FromOriginal(tc.original)
			if tc.bad != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.bad)))
				g.Expect(v).To(BeZero())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.Original()).To(Equal(tc.original))
		})
	}
}

func TestOriginals(t *testing.T) {
	many := `{"hooks":{`
	for i := range 12 {
		many += fmt.Sprintf(`"h%02d":null,`, i)
	}
	many += `"z":{"failurePolicy":"Fail","timeoutSeconds":1}}}`

	for _, tc := range []struct {
		name       string
		annotation *string
		want       map[string]v1alpha1.Original
		err        []string
	}{
		{"no annotation is nothing", nil, nil, nil},
		{"good entries are taken", ptr.To(`{"about":"x","hooks":{"a":{"failurePolicy":"Fail","timeoutSeconds":10},"b":{"failurePolicy":"Ignore","timeoutSeconds":30}}}`),
			map[string]v1alpha1.Original{"a": {FailurePolicy: fail, TimeoutSeconds: 10}, "b": {FailurePolicy: ignore, TimeoutSeconds: 30}}, nil},
		{"no hooks are nothing", ptr.To(`{"hooks":null}`), nil, nil},
		{"bad entries are named and do not cost the good one its original",
			ptr.To(`{"hooks":{"a":{"failurePolicy":"Fail","timeoutSeconds":1},"b":{"failurePolicy":"Evil","timeoutSeconds":10},"c":{"failurePolicy":"Fail","timeoutSeconds":31},
				"d":{"failurePolicy":"Fail"},"e":[],"f":{"failurePolicy":7,"timeoutSeconds":3},"g":{"failurePolicy":"Fail","timeoutSeconds":99999999999}}}`),
			map[string]v1alpha1.Original{"a": {FailurePolicy: fail, TimeoutSeconds: 1}},
			[]string{`"b": failurePolicy`, `"c": timeoutSeconds`, `"d": timeoutSeconds`, `"e": `, `"f": `, `"g": `}},
		{"the error does not grow with the annotation", &many, map[string]v1alpha1.Original{"z": {FailurePolicy: fail, TimeoutSeconds: 1}},
			[]string{`"h00"`, `"h09"`, "and 2 more"}},
		{"an about that is no text does no harm", ptr.To(`{"about":{},"hooks":{"a":{"failurePolicy":"Fail","timeoutSeconds":10}}}`),
			map[string]v1alpha1.Original{"a": {FailurePolicy: fail, TimeoutSeconds: 10}}, nil},
		{"text that is no JSON", ptr.To(`Fail`), nil, []string{"failed to decode annotation"}},
		{"an empty text", ptr.To(``), nil, []string{"failed to decode annotation"}},
		{"a list", ptr.To(`[]`), nil, []string{"failed to decode annotation"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var c hook.Configuration
			if tc.annotation != nil {
				c.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: *tc.annotation}
			}
			got, err := c.Originals()
			if tc.want == nil {
				g.Expect(got.Hooks).To(BeEmpty())
			} else {
				g.Expect(got.Hooks).To(Equal(tc.want))
			}
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, text := range tc.err {
				g.Expect(err).To(MatchError(ContainSubstring(text)))
			}
		})
	}
}
