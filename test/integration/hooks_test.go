// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// own and open are the hooks of every story as their owner set them and as the guard opens them; crds/foreign is out of scope.
var (
	own  = map[string]string{"policies/strict": "Fail 10s", "policies/slow": "Ignore 20s", "defaults/mutate": "Fail 15s", "crds/foreign": "Fail 10s"}
	open = map[string]string{"policies/strict": "Ignore 3s", "policies/slow": "Ignore 3s", "defaults/mutate": "Ignore 1s", "crds/foreign": "Fail 10s"}
)

// hookOf is a hook to be made; what is not set is left to the API server.
type hookOf struct {
	name, policy string
	timeout      int32
	// backend is a Service, "backend" by default; group the API group of its only rule, by default that of pods.
	backend, group string
	// resource is pods by default, of which no story has any that its hooks select.
	resource string
}

// full is the name of a configuration in the Shoot, hookName that of a hook; short says both in a story's words.
func (s *theShoot) full(configuration string) string { return configuration + "." + s.name }

func hookName(name string) string { return name + ".hooks.example.com" }

func (s *theShoot) short(configuration, hook string) string {
	return strings.TrimSuffix(configuration, "."+s.name) + "/" + strings.TrimSuffix(hook, ".hooks.example.com")
}

func (s *theShoot) validating(name string, hooks ...hookOf) *admissionregistrationv1.ValidatingWebhookConfiguration {
	o := s.newValidating(name, hooks...)
	s.create(o)
	return o
}

func (s *theShoot) newValidating(name string, hooks ...hookOf) *admissionregistrationv1.ValidatingWebhookConfiguration {
	o := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: s.meta(s.full(name))}
	o.Namespace = ""
	for _, h := range hooks {
		o.Webhooks = append(o.Webhooks, s.newHook(h))
	}
	return o
}

// newHook makes a hook that matches no object of any story.
func (s *theShoot) newHook(h hookOf) admissionregistrationv1.ValidatingWebhook {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: hookName(h.name), AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: s.name, Name: h.backend,
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{h.group}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
			},
		}},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{shootLabel: "none"}},
	}
	if h.resource != "" {
		w.Rules[0].Resources = []string{h.resource}
	}
	if h.backend == "" {
		w.ClientConfig.Service.Name = "backend"
	}
	if h.policy != "" {
		w.FailurePolicy = ptr.To(admissionregistrationv1.FailurePolicyType(h.policy))
	}
	if h.timeout != 0 {
		w.TimeoutSeconds = &h.timeout
	}
	return w
}

func (s *theShoot) mutating(name string, hooks ...hookOf) {
	o := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: s.meta(s.full(name))}
	o.Namespace = ""
	for _, h := range hooks {
		w := s.newHook(h)
		o.Webhooks = append(o.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: w.Name, AdmissionReviewVersions: w.AdmissionReviewVersions, SideEffects: w.SideEffects, ClientConfig: w.ClientConfig,
			Rules: w.Rules, ObjectSelector: w.ObjectSelector, FailurePolicy: w.FailurePolicy, TimeoutSeconds: w.TimeoutSeconds,
		})
	}
	s.create(o)
}

// read is a validating configuration as it is now.
func (s *theShoot) read(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	o := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.Expect(s.shoot().Get(s.ctx, client.ObjectKey{Name: s.full(name)}, o)).To(Succeed())
	return o
}

// edit changes a validating configuration as its owner does.
func (s *theShoot) edit(name string, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
	s.t.Helper()
	o := s.read(name)
	patch := client.MergeFrom(o.DeepCopy())
	change(o)
	s.Expect(s.shoot().Patch(s.ctx, o, patch, client.FieldOwner("owner"))).To(Succeed())
}

// set gives a hook of a validating configuration other values as its owner does.
func (s *theShoot) set(name string, i int, policy string, timeout int32) {
	s.t.Helper()
	s.edit(name, func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
		o.Webhooks[i].FailurePolicy = ptr.To(admissionregistrationv1.FailurePolicyType(policy))
		o.Webhooks[i].TimeoutSeconds = &timeout
	})
}

// standing is how all hooks of the Shoot stand now, by short name.
func (s *theShoot) standing() map[string]string {
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	mine := client.MatchingLabels{shootLabel: s.name}
	s.Expect(s.shoot().List(s.ctx, validating, mine)).To(Succeed())
	s.Expect(s.shoot().List(s.ctx, mutating, mine)).To(Succeed())
	out := map[string]string{}
	for _, c := range validating.Items {
		for _, h := range c.Webhooks {
			out[s.short(c.Name, h.Name)] = fmt.Sprintf("%s %ds", *h.FailurePolicy, *h.TimeoutSeconds)
		}
	}
	for _, c := range mutating.Items {
		for _, h := range c.Webhooks {
			out[s.short(c.Name, h.Name)] = fmt.Sprintf("%s %ds", *h.FailurePolicy, *h.TimeoutSeconds)
		}
	}
	return out
}

// snapshot is every field of every configuration of the Shoot.
func (s *theShoot) snapshot() bench.Snapshot {
	all, err := servers.Snapshot(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	return all
}

// changed is what differs in this Shoot's configurations from the beginning of the story, managers of fields included.
func (s *theShoot) changed() []string {
	var out []string
	for _, d := range s.before.Diff(s.snapshot()) {
		if strings.HasSuffix(d.Configuration, "."+s.name) {
			out = append(out, d.String())
		}
	}
	return out
}

// leftovers is what the guard left on this Shoot's configurations.
func (s *theShoot) leftovers() []string {
	var out []string
	for _, d := range s.snapshot().Leftovers() {
		if strings.HasSuffix(d.Configuration, "."+s.name) {
			out = append(out, d.String())
		}
	}
	return out
}

// touched are the writes to the Shoot, without those to the report: the Shoots of these stories share it.
func (s *theShoot) touched() []request {
	return s.gate.seen(func(r request) bool { return r.writes() && r.resource != "configmaps" })
}

// writes are the guard's writes to webhook configurations.
func (s *theShoot) writes() []request {
	return s.gate.seen(isPatch)
}

func isPatch(r request) bool {
	return r.writes() && (r.resource == validatingResource || r.resource == mutatingResource)
}

// with returns hooks with one of them standing otherwise.
func with(hooks map[string]string, name, values string) map[string]string {
	out := map[string]string{name: values}
	for k, v := range hooks {
		if k != name {
			out[k] = v
		}
	}
	return out
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
