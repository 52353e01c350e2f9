// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

type (
	valuesOf    = map[string]hook.Values
	originalsOf = map[string]v1alpha1.Original
)

// patched decodes into result what o is after p.
func patched(g *WithT, o any, p hook.Patch, result any) {
	var data []byte
	var err error
	if p.Type == types.JSONPatchType {
		data, err = applyJSON(g, o, p)
	} else {
		var document []byte
		document, err = json.Marshal(o)
		g.Expect(err).NotTo(HaveOccurred())
		data, err = strategicpatch.StrategicMergePatch(document, p.Data, o)
	}
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(data, result)).To(Succeed())
}

func TestOpenPatch(t *testing.T) {
	const about = `"about":"Set fail-open while the cluster sleeps and wakes up. These are the hooks' own values; each is given back when its backend answers."`
	annotation := func(hooks string) string {
		data, _ := json.Marshal(`{` + about + `,"hooks":` + hooks + `}`)
		return `"annotations":{"hibernation-guard.extensions.gardener.cloud/originals":` + string(data) + `}`
	}
	const bound = `"uid":"uid-1","resourceVersion":"7"`

	for _, tc := range []struct {
		name      string
		open      valuesOf
		originals originalsOf
		want      string
	}{
		{"opens one hook of several and writes the originals", valuesOf{"a": values(ignore, 3)}, originalsOf{"a": {FailurePolicy: fail, TimeoutSeconds: 10}},
			`{"metadata":{` + bound + `,` + annotation(`{"a":{"failurePolicy":"Fail","timeoutSeconds":10}}`) + `},"webhooks":[{"name":"a","failurePolicy":"Ignore","timeoutSeconds":3}]}`},
		{"opens two hooks, of each only what changes", valuesOf{"b": values(ignore, 2), "c": values(ignore, 3)}, nil,
			`{"metadata":{` + bound + `},"webhooks":[{"name":"b","failurePolicy":"Ignore"},{"name":"c","timeoutSeconds":3}]}`},
		{"leaves out a hook that stands at its open values", valuesOf{"a": values(fail, 10), "c": values(ignore, 3)}, nil,
			`{"metadata":{` + bound + `},"webhooks":[{"name":"c","timeoutSeconds":3}]}`},
		{"writes the annotation alone when the hooks stand open without it", valuesOf{"a": values(fail, 10)}, originalsOf{"a": {FailurePolicy: fail, TimeoutSeconds: 10}},
			`{"metadata":{` + bound + `,` + annotation(`{"a":{"failurePolicy":"Fail","timeoutSeconds":10}}`) + `}}`},
		{"is empty when nothing changes", valuesOf{"a": values(fail, 10)}, nil, ``},
		{"is empty when nothing is asked for", nil, nil, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := hook.FromValidating(validating(entry("a", values(fail, 10)), entry("b", values(fail, 2)), entry("c", values(ignore, 30))))
			p, err := hook.OpenPatch(c, tc.open, tc.originals)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Type).To(Equal(types.StrategicMergePatchType))
			g.Expect(p.WithoutAnnotation).To(BeFalse())
			g.Expect(p.Empty()).To(Equal(tc.want == ""))
			g.Expect(string(p.Data)).To(Equal(tc.want))
		})
	}
}

func TestOpenPatchKeepsAnEqualAnnotation(t *testing.T) {
	g := NewWithT(t)
	o := validating(entry("a", values(fail, 10)), entry("b", values(fail, 10)))
	originals := originalsOf{"a": {FailurePolicy: fail, TimeoutSeconds: 10}, "b": {FailurePolicy: fail, TimeoutSeconds: 10}}
	p, err := hook.OpenPatch(hook.FromValidating(o), valuesOf{"a": values(ignore, 3)}, originals)
	g.Expect(err).NotTo(HaveOccurred())
	open := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	patched(g, o, p, open)

	p, err = hook.OpenPatch(hook.FromValidating(open), valuesOf{"b": values(ignore, 3)}, originals)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(p.Data)).To(Equal(`{"metadata":{"uid":"uid-1","resourceVersion":"7"},"webhooks":[{"name":"b","failurePolicy":"Ignore","timeoutSeconds":3}]}`))
}

func TestOpenPatchAtTheSizeLimit(t *testing.T) {
	originals := originalsOf{"a": {FailurePolicy: fail, TimeoutSeconds: 10}}
	open := valuesOf{"a": values(ignore, 3)}
	p, err := hook.OpenPatch(hook.FromValidating(validating(entry("a", values(fail, 10)))), open, originals)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var body struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	NewWithT(t).Expect(json.Unmarshal(p.Data, &body)).To(Succeed())
	need := len(v1alpha1.OriginalsAnnotation) + len(body.Metadata.Annotations[v1alpha1.OriginalsAnnotation])
	room := validation.TotalAnnotationSizeLimitB - need

	for _, tc := range []struct {
		name  string
		other int // bytes of the other annotation, key and value
		own   string
		want  bool
	}{
		{"the annotation that just fits is written", room, "", true},
		{"one byte too many: the hook is opened without", room + 1, "", false},
		{"what stands in the annotation makes room for its successor", room, strings.Repeat("x", need-len(v1alpha1.OriginalsAnnotation)), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			o := validating(entry("a", values(fail, 10)))
			o.Annotations = map[string]string{"k": strings.Repeat("v", tc.other-1)}
			if tc.own != "" {
				o.Annotations[v1alpha1.OriginalsAnnotation] = tc.own
			}
			p, err := hook.OpenPatch(hook.FromValidating(o), open, originals)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.WithoutAnnotation).To(Equal(!tc.want))
			after := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			patched(g, o, p, after)
			c := hook.FromValidating(after)
			g.Expect(c.Hooks[0].Values).To(Equal(open["a"]))
			g.Expect(validation.ValidateAnnotationsSize(c.Annotations)).To(Succeed())
			got, err := c.Originals()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(got.Hooks) == 1).To(Equal(tc.want))
		})
	}
}

func TestRestorePatch(t *testing.T) {
	const key = "/metadata/annotations/hibernation-guard.extensions.gardener.cloud~1originals"
	const uid = `{"op":"test","path":"/metadata/uid","value":"uid-1"},`
	open := values(ignore, 3)

	for _, tc := range []struct {
		name       string
		annotation string
		from, to   valuesOf
		remaining  originalsOf
		want       string
	}{
		{"writes both fields of a hook and removes the annotation", "x", valuesOf{"b": open}, valuesOf{"b": values(fail, 10)}, nil,
			`[` + uid + `{"op":"test","path":"/webhooks/1/name","value":"b"},` +
				`{"op":"test","path":"/webhooks/1/failurePolicy","value":"Ignore"},{"op":"replace","path":"/webhooks/1/failurePolicy","value":"Fail"},` +
				`{"op":"test","path":"/webhooks/1/timeoutSeconds","value":3},{"op":"replace","path":"/webhooks/1/timeoutSeconds","value":10},` +
				`{"op":"remove","path":"` + key + `"}]`},
		{"leaves a field alone that does not differ", "", valuesOf{"a": open}, valuesOf{"a": values(ignore, 30)}, nil,
			`[` + uid + `{"op":"test","path":"/webhooks/0/name","value":"a"},{"op":"test","path":"/webhooks/0/timeoutSeconds","value":3},{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":30}]`},
		{"shrinks the annotation to what stays open", "x", nil, nil, originalsOf{"a": {FailurePolicy: fail, TimeoutSeconds: 10}},
			`[` + uid + `{"op":"replace","path":"` + key + `","value":"{\"about\":\"Set fail-open while the cluster sleeps and wakes up. These are the hooks' own values; each is given back when its backend answers.\",\"hooks\":{\"a\":{\"failurePolicy\":\"Fail\",\"timeoutSeconds\":10}}}"}]`},
		{"removes the annotation alone when the owner has given the hooks back", "x", valuesOf{"a": open}, valuesOf{"a": open}, nil,
			`[` + uid + `{"op":"remove","path":"` + key + `"}]`},
		{"does not write an annotation that is not there", "", nil, nil, originalsOf{"a": {FailurePolicy: fail, TimeoutSeconds: 10}}, ``},
		{"is empty when there is nothing to do", "", nil, nil, nil, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			o := validating(entry("a", open), entry("b", open))
			if tc.annotation != "" {
				o.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: tc.annotation}
			}
			p, err := hook.RestorePatch(hook.FromValidating(o), tc.from, tc.to, tc.remaining)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Type).To(Equal(types.JSONPatchType))
			g.Expect(p.Empty()).To(Equal(tc.want == ""))
			g.Expect(string(p.Data)).To(Equal(tc.want))
		})
	}
}

func TestRestorePatchRemovesAnAnnotationThatHasNoRoom(t *testing.T) {
	g := NewWithT(t)
	o := validating(entry("a", values(ignore, 3)), entry("b", values(ignore, 3)))
	o.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: "", "k": strings.Repeat("v", validation.TotalAnnotationSizeLimitB-100)}
	p, err := hook.RestorePatch(hook.FromValidating(o), valuesOf{"a": values(ignore, 3)}, valuesOf{"a": values(fail, 10)},
		originalsOf{"b": {FailurePolicy: fail, TimeoutSeconds: 10}})
	g.Expect(err).NotTo(HaveOccurred())
	after := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	patched(g, o, p, after)
	g.Expect(hook.FromValidating(after).Hooks[0].Values).To(Equal(values(fail, 10)))
	g.Expect(after.Annotations).NotTo(HaveKey(v1alpha1.OriginalsAnnotation))
}

func TestRestorePatchIsRefusedWhenSomethingMoved(t *testing.T) {
	from, to := values(ignore, 3), values(fail, 10)
	p, err := hook.RestorePatch(hook.FromValidating(validating(entry("a", from), entry("b", from))), valuesOf{"b": from}, valuesOf{"b": to}, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	recreated := validating(entry("a", from), entry("b", from))
	recreated.UID = "uid-2"
	for name, o := range map[string]*admissionregistrationv1.ValidatingWebhookConfiguration{
		"the configuration is another object": recreated,
		"the entries changed places":          validating(entry("b", from), entry("a", from)),
		"the entry is gone":                   validating(entry("a", from)),
		"somebody set the policy":             validating(entry("a", from), entry("b", values(fail, 3))),
		"somebody set the timeout":            validating(entry("a", from), entry("b", values(ignore, 4))),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := applyJSON(g, o, p)
			g.Expect(err).To(HaveOccurred())
		})
	}
	t.Run("a change of anything else is no obstacle", func(t *testing.T) {
		g := NewWithT(t)
		o := validating(entry("a", to), entry("b", from), entry("c", to))
		o.ResourceVersion, o.Webhooks[1].ClientConfig.CABundle = "8", []byte("new")
		_, err := applyJSON(g, o, p)
		g.Expect(err).NotTo(HaveOccurred())
	})
}

func TestPatchesOfHooksThatCannotBePatched(t *testing.T) {
	c := hook.FromValidating(validating(entry("a", values(ignore, 3)), entry("twice", values(ignore, 3)), entry("twice", values(fail, 3))))
	for _, tc := range []struct {
		name string
		to   valuesOf
		text string
	}{
		{"a hook the configuration does not have", valuesOf{"b": values(fail, 10)}, `has no hook "b"`},
		{"a name that two hooks have", valuesOf{"twice": values(fail, 10)}, `more than one hook "twice"`},
		{"no policy", valuesOf{"a": values("", 10)}, "failurePolicy is neither"},
		{"a timeout of zero", valuesOf{"a": values(fail, 0)}, "timeoutSeconds is not"},
		{"a timeout of 31 s", valuesOf{"a": values(fail, 31)}, "timeoutSeconds is not"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := hook.OpenPatch(c, tc.to, nil)
			g.Expect(err).To(MatchError(ContainSubstring(tc.text)))
			g.Expect(p.Empty()).To(BeTrue())
			p, err = hook.RestorePatch(c, tc.to, tc.to, nil)
			g.Expect(err).To(MatchError(ContainSubstring(tc.text)))
			g.Expect(p.Empty()).To(BeTrue())
		})
	}
	for name, from := range map[string]valuesOf{
		"present values are missing":               nil,
		"present values are those of another hook": {"b": values(ignore, 3)},
		"there are more present values than own":   {"a": values(ignore, 3), "b": values(ignore, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hook.RestorePatch(c, from, valuesOf{"a": values(fail, 10)}, nil)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("present values")))
		})
	}
}

// Whatever the policies and timeouts are, and whichever hooks are opened: restoring gives the object that was there before, and
// while it is open nothing but the two fields and the annotation differs.
func TestOpenAndRestoreIsTheIdentity(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		g := NewWithT(t)
		o := validating()
		for i := range random.IntN(100) {
			e := entry(fmt.Sprintf("h%d.example.com", i), values([]admissionregistrationv1.FailurePolicyType{fail, ignore}[random.IntN(2)], 1+random.Int32N(30)))
			e.ClientConfig.CABundle = []byte{byte(i)}
			o.Webhooks = append(o.Webhooks, e)
		}
		if random.IntN(2) == 0 {
			o.Annotations = map[string]string{"meta.helm.sh/release-name": "x"}
		}
		c := hook.FromValidating(o)
		open, own, originals := valuesOf{}, valuesOf{}, originalsOf{}
		for _, h := range c.Hooks {
			if random.IntN(3) > 0 {
				open[h.Name], own[h.Name], originals[h.Name] = hook.OpenValues(h, h.Values, 3, 1), h.Values, h.Values.Original()
			}
		}
		p, err := hook.OpenPatch(c, open, originals)
		g.Expect(err).NotTo(HaveOccurred())
		during := o.DeepCopy()
		if !p.Empty() {
			during = &admissionregistrationv1.ValidatingWebhookConfiguration{}
			patched(g, o, p, during)
		}
		got, err := hook.FromValidating(during).Originals()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Hooks).To(HaveLen(len(originals)))

		p, err = hook.RestorePatch(hook.FromValidating(during), open, own, nil)
		g.Expect(err).NotTo(HaveOccurred())
		after := during.DeepCopy()
		if !p.Empty() {
			after = &admissionregistrationv1.ValidatingWebhookConfiguration{}
			patched(g, during, p, after)
		}
		if len(after.Annotations) == 0 {
			after.Annotations = nil // removing the last one leaves an empty object, which the API server drops
		}
		g.Expect(after).To(Equal(o))

		delete(during.Annotations, v1alpha1.OriginalsAnnotation)
		for i := range during.Webhooks {
			during.Webhooks[i].FailurePolicy, during.Webhooks[i].TimeoutSeconds = ptr.To(c.Hooks[i].Values.Policy), ptr.To(c.Hooks[i].Values.Timeout)
		}
		if len(during.Annotations) == 0 {
			during.Annotations = nil
		}
		g.Expect(during).To(Equal(o))
	}
}
