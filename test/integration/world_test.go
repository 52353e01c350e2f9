// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// shootLabel is on all that belongs to a Shoot.
	shootLabel = "integration.test/shoot"

	validatingResource = "validatingwebhookconfigurations"
	mutatingResource   = "mutatingwebhookconfigurations"
)

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
