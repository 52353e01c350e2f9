// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

const (
	// shootLabel is on all that belongs to a Shoot.
	shootLabel = "integration.test/shoot"

	validatingResource = "validatingwebhookconfigurations"
	mutatingResource   = "mutatingwebhookconfigurations"
)

// own and open are the hooks of every story as their owner set them and as the guard opens them; outOfScope stays.
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
}

func (s *theShoot) shoot() client.Client { return servers.Shoot.Client() }

func (s *theShoot) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.name, Labels: map[string]string{shootLabel: s.name}}
}

func (s *theShoot) create(object client.Object) {
	s.t.Helper()
	s.Expect(s.shoot().Create(s.ctx, object)).To(Succeed())
	ctx := context.WithoutCancel(s.ctx)
	s.t.Cleanup(func() {
		err := s.shoot().Delete(ctx, object, client.GracePeriodSeconds(0))
		NewWithT(s.t).Expect(client.IgnoreNotFound(err)).To(Succeed())
	})
}

// makeWorld makes what every story begins with.
func (s *theShoot) makeWorld() {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.create(&corev1.ServiceAccount{ObjectMeta: s.meta("default")})
	s.nodeJoins()
	s.service("backend")
	s.comesBack("backend")
	s.validating("policies", hookOf{name: "strict", policy: "Fail", timeout: 10}, hookOf{name: "slow", policy: "Ignore", timeout: 20})
	s.mutating("defaults", hookOf{name: "mutate", policy: "Fail", timeout: 15})
	s.validating("crds", hookOf{name: "foreign", policy: "Fail", timeout: 10, group: "example.com"})
}

// forEver is the last renewal of a lease that is fresh whatever a story does to the clock.
var forEver = metav1.NewMicroTime(time.Now().Add(365 * 24 * time.Hour))

func (s *theShoot) node() *corev1.Node {
	node := &corev1.Node{ObjectMeta: s.meta(s.name)}
	node.Namespace = ""
	return node
}

func (s *theShoot) lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: s.meta(s.name)}
	lease.Namespace = corev1.NamespaceNodeLease
	return lease
}

// nodeJoins makes a node that is ready and alive.
func (s *theShoot) nodeJoins() {
	node := s.node()
	s.create(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.Expect(s.shoot().Status().Update(s.ctx, node)).To(Succeed())
	lease := s.lease()
	lease.Spec.RenewTime = &forEver
	s.create(lease)
}

// nodesGo removes the node with all pods; endpoints are emptied.
func (s *theShoot) nodesGo() {
	for backend := range s.pods {
		s.goes(backend)
	}
	for _, object := range []client.Object{s.node(), s.lease()} {
		s.Expect(client.IgnoreNotFound(s.shoot().Delete(s.ctx, object))).To(Succeed())
	}
}

// service makes a Service that has no pod yet.
func (s *theShoot) service(backend string) {
	port := []corev1.ServicePort{{Name: "https", Port: 443}}
	s.create(&corev1.Service{ObjectMeta: s.meta(backend), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": backend}, Ports: port}})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: s.meta(backend), AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](9443)}},
	}
	slice.Labels[discoveryv1.LabelServiceName] = backend
	s.create(slice)
	s.pods[backend] = 0
}

// comesBack gives the backend a new pod that answers.
func (s *theShoot) comesBack(backend string) {
	s.pods[backend]++
	pod := &corev1.Pod{ObjectMeta: s.meta(fmt.Sprintf("%s-%d", backend, s.pods[backend])), Spec: corev1.PodSpec{
		NodeName: s.name, AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{Name: "webhook", Image: "none"}},
	}}
	pod.Labels["app"] = backend
	s.create(pod)
	s.setReady(pod, corev1.ConditionTrue)
	s.setEndpoints(backend, discoveryv1.Endpoint{
		Addresses: []string{"192.0.2.10"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: s.name, Name: pod.Name, UID: pod.UID},
	})
}

func (s *theShoot) setReady(pod *corev1.Pod, ready corev1.ConditionStatus) {
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "webhook", ContainerID: "test://" + pod.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
	s.Expect(s.shoot().Status().Update(s.ctx, pod)).To(Succeed())
}

// goes removes the backend's pod and its endpoint.
func (s *theShoot) goes(backend string) {
	if s.pods[backend] > 0 {
		pod := &corev1.Pod{ObjectMeta: s.meta(fmt.Sprintf("%s-%d", backend, s.pods[backend]))}
		s.Expect(client.IgnoreNotFound(s.shoot().Delete(s.ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
	}
	s.setEndpoints(backend)
}

func (s *theShoot) setEndpoints(backend string, endpoints ...discoveryv1.Endpoint) {
	slice := &discoveryv1.EndpointSlice{}
	s.Expect(s.shoot().Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: backend}, slice)).To(Succeed())
	slice.Endpoints = endpoints
	s.Expect(s.shoot().Update(s.ctx, slice)).To(Succeed())
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

// edited makes the Service's endpoints such as a person wrote them: no selector, no pods.
func (s *theShoot) edited(backend string) {
	service := &corev1.Service{}
	s.Expect(s.shoot().Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: backend}, service)).To(Succeed())
	service.Spec.Selector = nil
	s.Expect(s.shoot().Update(s.ctx, service)).To(Succeed())
	delete(s.pods, backend)
	s.setEndpoints(backend, discoveryv1.Endpoint{Addresses: []string{"192.0.2.20"}})
}

// tunnel makes a pod of the tunnel that is not ready.
func (s *theShoot) tunnel() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: s.meta("vpn-shoot-" + s.name), Spec: corev1.PodSpec{
		NodeName: s.name, AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{Name: "vpn", Image: "none"}},
	}}
	pod.Namespace, pod.Labels["app"] = metav1.NamespaceSystem, "vpn-shoot"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "default"}}
	s.Expect(client.IgnoreAlreadyExists(s.shoot().Create(s.ctx, account))).To(Succeed())
	s.create(pod)
	s.setReady(pod, corev1.ConditionFalse)
	return pod
}

// renewed sets when the node renewed its lease last.
func (s *theShoot) renewed(at time.Time) {
	lease := s.lease()
	s.Expect(s.shoot().Get(s.ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(at))
	s.Expect(s.shoot().Update(s.ctx, lease)).To(Succeed())
}
