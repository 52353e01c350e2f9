// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package hook has one view of an admission webhook, whichever kind of configuration holds it, and the patches that open it,
// give it back and hand its fields back, as values. It reads and writes nothing.
package hook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// Kind of a webhook configuration.
type Kind string

const (
	// Validating is the kind of configurations whose hooks only allow or deny.
	Validating Kind = "ValidatingWebhookConfiguration"
	// Mutating is the kind of configurations whose hooks may change the object.
	Mutating Kind = "MutatingWebhookConfiguration"
)

// The API's defaults and bounds of the fields a hook is judged by (admissionregistration.k8s.io/v1).
const (
	// DefaultTimeout in seconds is what a nil timeoutSeconds means.
	DefaultTimeout int32 = 10
	// MinTimeout in seconds is the shortest timeout the API accepts.
	MinTimeout int32 = 1
	// MaxTimeout in seconds is the longest timeout the API accepts.
	MaxTimeout int32 = 30
	// DefaultPort is what a nil port of a service reference means.
	DefaultPort int32 = 443
)

// Configuration is a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration. It shares maps and slices with the
// object it was made from; nobody may change them.
type Configuration struct {
	// Kind of the configuration.
	Kind Kind
	// Name of the configuration.
	Name string
	// UID tells a re-created configuration from the former one of the same name.
	UID types.UID
	// ResourceVersion at which the configuration was read.
	ResourceVersion string
	// Labels of the configuration.
	Labels map[string]string
	// Annotations of the configuration.
	Annotations map[string]string
	// ManagedFields of the configuration, in the API server's order.
	ManagedFields []metav1.ManagedFieldsEntry
	// Hooks are the entries of webhooks[], in their order.
	Hooks []Hook
}

// Hook is one entry of webhooks[]. matchConditions are not carried: nothing is decided on them.
type Hook struct {
	// Name of the entry.
	Name string
	// Index of the entry in webhooks[].
	Index int
	// Mutating says that the hook belongs to a MutatingWebhookConfiguration.
	Mutating bool
	// Duplicate says that another entry of the configuration has the same name. The API refuses that today; objects written
	// before it did may still exist, and a patch keyed by name reaches only the first of them.
	Duplicate bool
	// Values are the effective failure policy and timeout.
	Values Values
	// NoTimeout says that the entry has no timeoutSeconds, which an API server of today never returns.
	NoTimeout bool
	// NamespaceSelector and ObjectSelector narrow what Rules match; nil matches all.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// Service is the backend in the cluster; nil when the hook has none.
	Service *Service
	// URL is the backend outside of the cluster's services; empty when the hook has none.
	URL string
	// CABundle is the PEM bundle the API server trusts the backend by; empty means the system's roots.
	CABundle []byte
	// Rules say which requests the hook is called for.
	Rules []admissionregistrationv1.RuleWithOperations
	// ReviewVersions are the AdmissionReview versions the backend understands, preferred ones first.
	ReviewVersions []string
	// SideEffects of a call; empty when the entry does not say.
	SideEffects admissionregistrationv1.SideEffectClass
}

// Service is what clientConfig.service points at.
type Service struct {
	// Namespace of the Service.
	Namespace string
	// Name of the Service.
	Name string
	// Port of the Service; 443 when the reference has none.
	Port int32
	// Path of the request's URL; empty when the reference has none.
	Path string
}

// Values are the two fields of a hook that the guard writes.
type Values struct {
	// Policy is Fail or Ignore; nil in the API is Fail here.
	Policy admissionregistrationv1.FailurePolicyType
	// Timeout in seconds, 1 to 30; nil in the API is 10 here.
	Timeout int32
}

// FromValidating returns the view of a ValidatingWebhookConfiguration.
func FromValidating(o *admissionregistrationv1.ValidatingWebhookConfiguration) Configuration {
	c := configuration(Validating, o.ObjectMeta)
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		h := newHook(w.Name, w.FailurePolicy, w.TimeoutSeconds, w.ClientConfig, w.SideEffects)
		h.Rules, h.ReviewVersions = w.Rules, w.AdmissionReviewVersions
		h.NamespaceSelector, h.ObjectSelector = w.NamespaceSelector, w.ObjectSelector
		c.Hooks = append(c.Hooks, h)
	}
	return c.numbered()
}

// FromMutating returns the view of a MutatingWebhookConfiguration.
func FromMutating(o *admissionregistrationv1.MutatingWebhookConfiguration) Configuration {
	c := configuration(Mutating, o.ObjectMeta)
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		h := newHook(w.Name, w.FailurePolicy, w.TimeoutSeconds, w.ClientConfig, w.SideEffects)
		h.Mutating, h.Rules, h.ReviewVersions = true, w.Rules, w.AdmissionReviewVersions
		h.NamespaceSelector, h.ObjectSelector = w.NamespaceSelector, w.ObjectSelector
		c.Hooks = append(c.Hooks, h)
	}
	return c.numbered()
}

func configuration(kind Kind, m metav1.ObjectMeta) Configuration {
	return Configuration{
		Kind: kind, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels: m.Labels, Annotations: m.Annotations, ManagedFields: m.ManagedFields,
	}
}

func newHook(
	name string,
	policy *admissionregistrationv1.FailurePolicyType,
	timeout *int32,
	backend admissionregistrationv1.WebhookClientConfig,
	sideEffects *admissionregistrationv1.SideEffectClass,
) Hook {
	h := Hook{
		Name: name,
		Values: Values{
			Policy:  ptr.Deref(policy, admissionregistrationv1.Fail),
			Timeout: ptr.Deref(timeout, DefaultTimeout),
		},
		NoTimeout:   timeout == nil,
		URL:         ptr.Deref(backend.URL, ""),
		CABundle:    backend.CABundle,
		SideEffects: ptr.Deref(sideEffects, ""),
	}
	if s := backend.Service; s != nil {
		h.Service = &Service{Namespace: s.Namespace, Name: s.Name, Port: ptr.Deref(s.Port, DefaultPort), Path: ptr.Deref(s.Path, "")}
	}
	return h
}

func (c Configuration) numbered() Configuration {
	seen := make(map[string]int, len(c.Hooks))
	for _, h := range c.Hooks {
		seen[h.Name]++
	}
	for i := range c.Hooks {
		c.Hooks[i].Index = i
		c.Hooks[i].Duplicate = seen[c.Hooks[i].Name] > 1
	}
	return c
}

// Hook returns the entry of that name, the first if the name is a duplicate, and whether there is one.
func (c Configuration) Hook(name string) (Hook, bool) {
	for _, h := range c.Hooks {
		if h.Name == name {
			return h, true
		}
	}
	return Hook{}, false
}

// Key is the key of the hook in the record.
func (c Configuration) Key(h Hook) string {
	return v1alpha1.HookKey(string(c.Kind), c.Name, c.UID, h.Name)
}

// OpenValues are the values of an open hook: Ignore, and the timeout given for hooks of its kind, in seconds, but never longer
// than its original one.
func OpenValues(h Hook, original Values, validating, mutating int32) Values {
	timeout := validating
	if h.Mutating {
		timeout = mutating
	}
	return Values{Policy: admissionregistrationv1.Ignore, Timeout: min(original.Timeout, timeout)}
}
