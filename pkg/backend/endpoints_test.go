// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
)

func TestJudgeEndpoints(t *testing.T) {
	run(t, map[string]testCase{
		"an endpoint that says nothing about being ready is ready": {func(w *world) { w.facts.Slices[0].Endpoints[0].Conditions.Ready = nil },
			backend.Ready, backend.EndpointsReady, ""},
		"one fresh endpoint among stale ones is enough": {func(w *world) {
			w.facts.Slices = []discoveryv1.EndpointSlice{slice("hook-a", endpoint("gone")), slice("hook-b", endpoint("hook-1"))}
		}, backend.Ready, backend.EndpointsReady, "1 of 2"},
		"a port without a name is matched": {func(w *world) {
			w.facts.Service.Spec.Ports = []corev1.ServicePort{{Port: 443}}
			w.facts.Slices[0].Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(9443))}}
		}, backend.Ready, backend.EndpointsReady, ""},
		"an endpoint without the port of the service is none": {func(w *world) { w.facts.Slices[0].Ports = w.facts.Slices[0].Ports[:1] },
			backend.NotReady, backend.NoReadyEndpoints, "port 443"},
		"an endpoint port without a number is none": {func(w *world) { w.facts.Slices[0].Ports[1].Port = nil },
			backend.NotReady, backend.NoReadyEndpoints, ""},
		"endpoints of another service do not count": {func(w *world) { w.facts.Slices[0].Labels[discoveryv1.LabelServiceName] = "other" },
			backend.NotReady, backend.NoReadyEndpoints, ""},
		"an endpoint that is not ready does not count": {func(w *world) {
			w.facts.Slices[0].Endpoints[0].Conditions.Ready = new(false)
			unready(&w.facts.Pods[0])
		}, backend.NotReady, backend.NoReadyEndpoints, "matches 1 pods"},
		"no endpoint and no pod": {func(w *world) { w.facts.Slices, w.facts.Pods = nil, nil },
			backend.NotReady, backend.NoReadyEndpoints, "no pod matches the selector"},

		"an endpoint whose pod is gone is stale": {func(w *world) { w.facts.Pods = nil },
			backend.NotReady, backend.StaleEndpoints, `pod "hook-1", which does not exist any more`},
		"an endpoint whose pod was replaced by one of the same name is stale": {func(w *world) { w.facts.Pods[0].UID = "another" },
			backend.NotReady, backend.StaleEndpoints, "does not exist any more"},
		"an endpoint whose pod is not ready is stale, as with publishNotReadyAddresses": {func(w *world) { unready(&w.facts.Pods[0]) },
			backend.NotReady, backend.StaleEndpoints, "is not ready"},
		"an endpoint whose pod has no status is stale": {func(w *world) { w.facts.Pods[0].Status = corev1.PodStatus{} },
			backend.NotReady, backend.StaleEndpoints, "is not ready"},
		"an endpoint whose pod is terminating is stale": {func(w *world) { w.facts.Pods[0].DeletionTimestamp = &metav1.Time{Time: now} },
			backend.NotReady, backend.StaleEndpoints, "is terminating"},
		"an endpoint whose pod the garbage collector has marked as failed is stale, whatever its condition says": {func(w *world) {
			w.facts.Pods[0].Status.Phase = corev1.PodFailed
		}, backend.NotReady, backend.StaleEndpoints, "has ended"},
		"an endpoint whose pod has succeeded is stale": {func(w *world) { w.facts.Pods[0].Status.Phase = corev1.PodSucceeded },
			backend.NotReady, backend.StaleEndpoints, "has ended"},
		"an endpoint without a pod is stale when the service has a selector": {func(w *world) { w.facts.Slices[0].Endpoints[0].TargetRef = nil },
			backend.NotReady, backend.StaleEndpoints, "names no pod"},
		"an endpoint that names something else than a pod is stale when the service has a selector": {func(w *world) {
			w.facts.Slices[0].Endpoints[0].TargetRef.Kind = "Node"
		}, backend.NotReady, backend.StaleEndpoints, "names no pod"},
		"an endpoint whose node is gone is stale": {func(w *world) {
			w.facts.Pods[0].Spec.NodeName = "n0"
			w.cluster.NodeLeases["n0"] = now
		}, backend.NotReady, backend.StaleEndpoints, `node "n0" does not exist`},
		"an endpoint on a node that has stopped renewing its lease": {func(w *world) {
			w.facts.Pods[0].Spec.NodeName = "n0"
			w.cluster.Nodes = append(w.cluster.Nodes, node("n0"))
			w.cluster.NodeLeases["n0"] = now.Add(-41 * time.Second)
		}, backend.NotReady, backend.NodeNotReady, `node "n0" has not renewed its lease`},
		"an endpoint on a node whose lease is 40 s old": {func(w *world) {
			w.facts.Pods[0].Spec.NodeName = "n0"
			w.cluster.Nodes = append(w.cluster.Nodes, node("n0"))
			w.cluster.NodeLeases["n0"] = now.Add(-40 * time.Second)
		}, backend.Ready, backend.EndpointsReady, ""},
	})
}

func TestJudgePods(t *testing.T) {
	none := func(w *world) { w.facts.Slices = nil }
	run(t, map[string]testCase{
		"a pod that fits nowhere is told in the scheduler's words": {func(w *world) {
			none(w)
			unscheduled(&w.facts.Pods[0], "0/1 nodes are available: 1 Insufficient cpu.")
		}, backend.NotReady, backend.BackendUnschedulable, "0/1 nodes are available: 1 Insufficient cpu."},
		"a pod that fits nowhere explains more than the endpoint of one that is gone": {func(w *world) {
			unscheduled(&w.facts.Pods[0], "no nodes available")
			w.facts.Slices[0].Endpoints[0].TargetRef.Name = "gone"
		}, backend.NotReady, backend.BackendUnschedulable, "no nodes available"},
		"a pod that fits nowhere beside one that serves is no matter": {func(w *world) {
			w.facts.Pods = append(w.facts.Pods, pod("hook-2", ""))
			unscheduled(&w.facts.Pods[1], "no nodes available")
		}, backend.Ready, backend.EndpointsReady, ""},
		"a pod of something else that fits nowhere is no matter": {func(w *world) {
			none(w)
			unscheduled(&w.facts.Pods[0], "no nodes available")
			w.facts.Pods[0].Labels["app"] = "other"
		}, backend.NotReady, backend.NoReadyEndpoints, "no pod matches"},
		"a pod that the scheduler has not looked at yet": {func(w *world) {
			none(w)
			unscheduled(&w.facts.Pods[0], "")
			w.facts.Pods[0].Status.Conditions = nil
		}, backend.NotReady, backend.NoReadyEndpoints, "matches 1 pods"},
		"a pod that is scheduled is not unschedulable": {func(w *world) {
			none(w)
			unready(&w.facts.Pods[0])
			w.facts.Pods[0].Status.Conditions = append(w.facts.Pods[0].Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
		}, backend.NotReady, backend.NoReadyEndpoints, ""},
		"a pod that goes explains nothing, neither by its container": {func(w *world) {
			none(w)
			waiting(&w.facts.Pods[0], "CrashLoopBackOff", "back-off 40s")
			w.facts.Pods[0].DeletionTimestamp = &metav1.Time{Time: now}
		}, backend.NotReady, backend.NoReadyEndpoints, "matches 1 pods"},
		"nor by its node": {func(w *world) {
			none(w)
			w.facts.Pods[0].Spec.NodeName = "n0"
			w.facts.Pods[0].DeletionTimestamp = &metav1.Time{Time: now}
		}, backend.NotReady, backend.NoReadyEndpoints, "matches 1 pods"},
		"a container that ends again and again is told in the kubelet's words": {func(w *world) {
			none(w)
			waiting(&w.facts.Pods[0], "CrashLoopBackOff", "back-off 40s restarting failed container")
		}, backend.NotReady, backend.BackendCrashLooping, `container "main" of pod "hook-1": back-off 40s`},
		"an init container that ends again and again, too": {func(w *world) {
			none(w)
			waiting(&w.facts.Pods[0], "CrashLoopBackOff", "back-off 40s")
			status := &w.facts.Pods[0].Status
			status.InitContainerStatuses, status.ContainerStatuses = status.ContainerStatuses, nil
		}, backend.NotReady, backend.BackendCrashLooping, ""},
		"a crash on a node that is gone is no news": {func(w *world) {
			none(w)
			waiting(&w.facts.Pods[0], "CrashLoopBackOff", "back-off 40s")
			w.facts.Pods[0].Spec.NodeName = "n0"
		}, backend.NotReady, backend.NodeNotReady, `node "n0" does not exist of pod`},
		"an image that cannot be pulled is told": {func(w *world) {
			none(w)
			waiting(&w.facts.Pods[0], "ImagePullBackOff", "Back-off pulling image")
		}, backend.NotReady, backend.NoReadyEndpoints, "ImagePullBackOff Back-off pulling image"},
	})
}

func TestJudgeWithoutSelector(t *testing.T) {
	since := func(age time.Duration) func(*world) {
		return func(w *world) {
			selectorless(w)
			w.cluster.ReadyNodeSince = now.Add(-age)
		}
	}
	run(t, map[string]testCase{
		"counts as ready after five minutes with a ready node": {since(5 * time.Minute), backend.Ready, backend.EndpointsAssumed, "has no selector"},
		"is unknown before":               {since(5*time.Minute - time.Nanosecond), backend.Unknown, backend.Inconclusive, "has no selector"},
		"is unknown without a ready node": {selectorless, backend.Unknown, backend.Inconclusive, "has no selector"},
		"is not ready without an endpoint, however long nodes have been ready": {func(w *world) {
			since(time.Hour)(w)
			w.facts.Slices = nil
		}, backend.NotReady, backend.NoReadyEndpoints, "neither a selector nor a ready endpoint"},
		"is ready at once when an endpoint names a pod that serves": {func(w *world) { w.facts.Service.Spec.Selector = nil },
			backend.Ready, backend.EndpointsReady, ""},
		"is not ready when its endpoint names a pod that does not exist": {func(w *world) {
			w.facts.Service.Spec.Selector = nil
			w.facts.Pods = nil
			w.cluster.ReadyNodeSince = now.Add(-time.Hour)
		}, backend.NotReady, backend.StaleEndpoints, ""},
	})
}

func TestMembers(t *testing.T) {
	g := NewWithT(t)
	w := healthy()
	second := pod("hook-2", "n1") // selected, without an endpoint
	unready(&second)
	other := pod("hook-0", "n1") // not selected, with an endpoint
	other.Labels = nil
	waits := pod("hook-3", "n1")
	waiting(&waits, "ContainerCreating", "")
	foreign := pod("elsewhere", "n1")
	foreign.Labels = nil
	replaced := pod("replaced", "n1") // by another of its name
	replaced.Labels, replaced.UID = nil, "another"
	w.facts.Pods = append(w.facts.Pods, second, other, waits, foreign, replaced)
	w.facts.Slices = append(w.facts.Slices, slice("hook-b", endpoint("hook-0"), endpoint("gone"), endpoint("replaced")))

	before := backend.Judge(w.cluster, ref, w.facts).Members
	g.Expect(before).To(Equal([]string{"uid-hook-0/c-hook-0", "uid-hook-1/c-hook-1", "uid-hook-2/c-hook-2"}))

	w.facts.Pods[0].Status.ContainerStatuses[0].ContainerID = "restarted"
	g.Expect(backend.Judge(w.cluster, ref, w.facts).Members).NotTo(ContainElement("uid-hook-1/c-hook-1"), "a restart ends a member")

	w.facts.Service.Spec.Selector = nil
	g.Expect(backend.Judge(w.cluster, ref, w.facts).Members).To(Equal([]string{"uid-hook-0/c-hook-0", "uid-hook-1/restarted"}), "no selector selects nothing")

	w.facts.Pods, w.cluster.Nodes = nil, nil
	g.Expect(backend.Judge(w.cluster, ref, w.facts).Members).To(And(BeEmpty(), Not(BeNil())), "known to be none")
}

// The report is written only when it changes: the same facts give the same words, however they are listed.
func TestJudgeOrderDoesNotMatter(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"crash looping": func(pod *corev1.Pod) { waiting(pod, "CrashLoopBackOff", "of "+pod.Name) },
		"unschedulable": func(pod *corev1.Pod) { unscheduled(pod, "of "+pod.Name) },
		"waiting":       func(pod *corev1.Pod) { waiting(pod, "ErrImagePull", "of "+pod.Name) },
		"lost":          func(pod *corev1.Pod) { pod.Spec.NodeName = "of " + pod.Name },
		"serving":       func(*corev1.Pod) {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := healthy()
			w.facts.Pods, w.facts.Slices = nil, nil
			for i := range 8 {
				pod := pod(fmt.Sprintf("hook-%d", i), "n1")
				change(&pod)
				w.facts.Pods = append(w.facts.Pods, pod)
				w.facts.Slices = append(w.facts.Slices, slice(pod.Name, endpoint(pod.Name), endpoint("gone")))
			}
			want := backend.Judge(w.cluster, ref, w.facts)
			for range 50 {
				rand.Shuffle(len(w.facts.Pods), func(i, j int) { w.facts.Pods[i], w.facts.Pods[j] = w.facts.Pods[j], w.facts.Pods[i] })
				slices.Reverse(w.facts.Slices)
				g.Expect(backend.Judge(w.cluster, ref, w.facts)).To(Equal(want))
			}
		})
	}
}

// What kube-apiserver itself cannot resolve is never ready.
func TestJudgeAgreesWithTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	var resolved, refused int
	for range 5000 {
		w := healthy()
		w.cluster.ReadyNodeSince = now.Add(-time.Hour)
		distort(random, &w)
		services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if w.facts.Service != nil {
			g.Expect(services.Add(w.facts.Service)).To(Succeed())
		}
		_, err := proxy.ResolveEndpoint(corev1listers.NewServiceLister(services), endpointSlices(w.facts.Slices), ref.Namespace, ref.Name, ref.Port)
		verdict := backend.Judge(w.cluster, ref, w.facts)
		if err != nil {
			refused++
			g.Expect(verdict.State).To(Equal(backend.NotReady), "the API server says: %v", err)
		} else if verdict.State == backend.Ready {
			resolved++
		}
	}
	g.Expect(resolved).To(BeNumerically(">", 200), "ready backends are among them")
	g.Expect(refused).To(BeNumerically(">", 200), "refused ones, too")
}

func distort(random *rand.Rand, w *world) {
	rarely := func() bool { return random.IntN(6) == 0 }
	w.facts.Slices = append(w.facts.Slices, slice("hook-b", endpoint("hook-1"), endpoint("gone")))
	for i := range w.facts.Slices {
		s := &w.facts.Slices[i]
		if rarely() {
			s.Labels = nil
		}
		if rarely() {
			s.Ports = s.Ports[:1]
		}
		if rarely() {
			s.Ports[0].Port = nil
		}
		for j := range s.Endpoints {
			s.Endpoints[j].Conditions.Ready = []*bool{nil, new(true), new(false), new(false)}[random.IntN(4)]
			if rarely() {
				s.Endpoints[j].TargetRef = nil
			}
		}
	}
	spec := &w.facts.Service.Spec
	spec.Type = []corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer", "ClusterIP", "ClusterIP", "ExternalName"}[random.IntN(6)]
	if rarely() {
		spec.Ports[1].Port = 444
	}
	if rarely() {
		spec.Selector = nil
	}
	if rarely() {
		w.facts.Service = nil
	}
}

// endpointSlices gives the slices of a Service as kube-apiserver's informer does.
type endpointSlices []discoveryv1.EndpointSlice

func (e endpointSlices) GetEndpointSlices(_, service string) ([]*discoveryv1.EndpointSlice, error) {
	var found []*discoveryv1.EndpointSlice
	for i := range e {
		if e[i].Labels[discoveryv1.LabelServiceName] == service {
			found = append(found, &e[i])
		}
	}
	return found, nil
}
