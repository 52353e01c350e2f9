// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
)

var (
	now = time.Date(2026, 8, 24, 12, 0, 0, 0, time.UTC)
	ref = backend.Ref{Namespace: "policy", Name: "hook", Port: 443}
)

// world is a backend with one pod that answers on a node that is alive; cases break parts of it.
type world struct {
	cluster backend.Cluster
	facts   backend.Facts
}

func healthy() world {
	return world{
		cluster: backend.Cluster{Now: now, Nodes: []corev1.Node{node("n1")}, NodeLeases: map[string]time.Time{"n1": now.Add(-5 * time.Second)}},
		facts: backend.Facts{
			NamespaceFound: true,
			Service: &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "policy", Name: "hook"},
				Spec: corev1.ServiceSpec{
					Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "hook"},
					Ports: []corev1.ServicePort{{Name: "metrics", Port: 8000}, {Name: "https", Port: 443}},
				},
			},
			Slices: []discoveryv1.EndpointSlice{slice("hook-a", endpoint("hook-1"))},
			Pods:   []corev1.Pod{pod("hook-1", "n1")},
		},
	}
}

func node(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func pod(name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "policy", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "hook"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", ContainerID: "c-" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func waiting(pod *corev1.Pod, reason, message string) {
	unready(pod)
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func unscheduled(pod *corev1.Pod, message string) {
	pod.Spec.NodeName = ""
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message},
	}}
}

func endpoint(pod string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{"10.0.0.1"},
		Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "policy", Name: pod, UID: types.UID("uid-" + pod)},
	}
}

func slice(name string, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "policy", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(8000))}, {Name: new("https"), Port: new(int32(9443))}},
		Endpoints:  endpoints,
	}
}

func selectorless(w *world) {
	w.facts.Service.Spec.Selector = nil
	w.facts.Pods = nil
	w.facts.Slices[0].Endpoints[0].TargetRef = nil
}

type testCase struct {
	change  func(w *world)
	state   backend.State
	reason  backend.Reason
	message string // a part of it
}

func run(t *testing.T, cases map[string]testCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := healthy()
			tc.change(&w)
			got := backend.Judge(w.cluster, ref, w.facts)
			NewWithT(t).Expect(got).To(MatchFields(IgnoreExtras, Fields{
				"State": Equal(tc.state), "Reason": Equal(tc.reason), "Message": ContainSubstring(tc.message),
			}))
		})
	}
}

func TestJudgeService(t *testing.T) {
	run(t, map[string]testCase{
		"a fresh endpoint on a node that is alive is ready": {func(*world) {}, backend.Ready, backend.EndpointsReady, "1 of 1"},
		"a missing namespace":                               {func(w *world) { w.facts = backend.Facts{} }, backend.NotReady, backend.NamespaceNotFound, `namespace "policy" does not exist`},
		"a missing service":                                 {func(w *world) { w.facts.Service = nil }, backend.NotReady, backend.ServiceNotFound, `service "policy/hook" does not exist`},
		"an external name": {func(w *world) { w.facts.Service.Spec.Type = corev1.ServiceTypeExternalName },
			backend.NotReady, backend.UnsupportedServiceType, "ExternalName"},
		"a missing port": {func(w *world) { w.facts.Service.Spec.Ports = w.facts.Service.Spec.Ports[:1] },
			backend.NotReady, backend.ServicePortNotFound, "no port 443"},
		"what the service lacks is told also when no node is left": {func(w *world) { w.facts.Service, w.cluster.Nodes = nil, nil },
			backend.NotReady, backend.ServiceNotFound, ""},
	})
}

func TestJudgeCluster(t *testing.T) {
	vpn := func(change func(*corev1.Pod)) corev1.Pod {
		vpn := pod("vpn-shoot", "n1")
		vpn.Namespace = "kube-system"
		change(&vpn)
		return vpn
	}
	run(t, map[string]testCase{
		"a lease of exactly 40 s is fresh": {func(w *world) { w.cluster.NodeLeases["n1"] = now.Add(-40 * time.Second) },
			backend.Ready, backend.EndpointsReady, ""},
		"a lease older than 40 s is not": {func(w *world) { w.cluster.NodeLeases["n1"] = now.Add(-40*time.Second - time.Nanosecond) },
			backend.NotReady, backend.NodeNotReady, "none of the cluster's nodes"},
		"a kubelet's clock that is ahead does no harm": {func(w *world) { w.cluster.NodeLeases["n1"] = now.Add(time.Hour) },
			backend.Ready, backend.EndpointsReady, ""},
		"a node without a lease is not alive":         {func(w *world) { w.cluster.NodeLeases = nil }, backend.NotReady, backend.NodeNotReady, ""},
		"a lease without its node counts for nothing": {func(w *world) { w.cluster.Nodes = nil }, backend.NotReady, backend.NodeNotReady, "the cluster has no node"},
		"without a node a service without selector is down": {func(w *world) {
			selectorless(w)
			w.cluster.ReadyNodeSince, w.cluster.Nodes = now.Add(-time.Hour), nil
		}, backend.NotReady, backend.NodeNotReady, ""},
		"a ready pod of the tunnel is enough": {func(w *world) {
			w.cluster.TunnelPods = []corev1.Pod{vpn(unready), vpn(func(*corev1.Pod) {})}
		}, backend.Ready, backend.EndpointsReady, ""},
		"a tunnel without a ready pod is down": {func(w *world) { w.cluster.TunnelPods = []corev1.Pod{vpn(unready)} },
			backend.NotReady, backend.TunnelDown, "app=vpn-shoot"},
		"a pod of the tunnel that is left over from a node that is gone does not count": {func(w *world) {
			w.cluster.TunnelPods = []corev1.Pod{vpn(func(pod *corev1.Pod) { pod.Spec.NodeName = "n0" })}
		}, backend.NotReady, backend.TunnelDown, ""},
		"a terminating pod of the tunnel does not count": {func(w *world) {
			w.cluster.TunnelPods = []corev1.Pod{vpn(func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} })}
		}, backend.NotReady, backend.TunnelDown, ""},
	})
}

func TestJudgeErrors(t *testing.T) {
	failed := errors.New("too many requests")
	run(t, map[string]testCase{
		"unread facts of the cluster tell nothing": {func(w *world) { w.cluster = backend.Cluster{Now: now, Err: failed} },
			backend.Unknown, backend.Inconclusive, "too many requests"},
		"unread facts of the cluster tell nothing, though the service is known to be missing": {func(w *world) {
			w.cluster.Err, w.facts.Service = failed, nil
		}, backend.Unknown, backend.Inconclusive, ""},
		"unread facts of the backend tell nothing": {func(w *world) { w.facts = backend.Facts{Err: failed} },
			backend.Unknown, backend.Inconclusive, `service "policy/hook" could not be read: too many requests`},
		"unread facts of the backend do not matter when no node is left": {func(w *world) {
			w.facts, w.cluster.Nodes = backend.Facts{Err: failed}, nil
		}, backend.NotReady, backend.NodeNotReady, ""},
	})
	t.Run("what was not read has no members", func(t *testing.T) {
		g := NewWithT(t)
		w := healthy()
		w.facts.Err = failed
		g.Expect(backend.Judge(w.cluster, ref, w.facts).Members).To(BeNil())
		w = healthy()
		w.cluster.Err = failed
		g.Expect(backend.Judge(w.cluster, ref, w.facts).Members).To(BeNil())
	})
}

func TestNodes(t *testing.T) {
	g := NewWithT(t)
	c := healthy().cluster
	g.Expect(c.FreshNode()).To(BeTrue())
	g.Expect(c.ReadyNode()).To(BeTrue())

	c.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
	g.Expect(c.FreshNode()).To(BeTrue(), "a node that is not ready yet is alive")
	g.Expect(c.ReadyNode()).To(BeFalse())

	c = healthy().cluster
	c.NodeLeases["n1"] = now.Add(-time.Minute)
	g.Expect(c.ReadyNode()).To(BeFalse(), "the condition of a node that is gone stays for a while")

	c.Nodes[0].Status.Conditions[0].Status = corev1.ConditionFalse
	c.Nodes, c.NodeLeases["n2"] = append(c.Nodes, node("n2")), now
	g.Expect(c.ReadyNode()).To(BeTrue(), "one is enough")
	g.Expect(backend.Cluster{}.TunnelUp()).To(BeTrue(), "without pods no tunnel is expected")
}
