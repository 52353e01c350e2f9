// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// backend is a Service that resolves, in a cluster that can be reached.
type backend struct {
	cluster Cluster
	service *corev1.Service
	port    *corev1.ServicePort
	slices  []discoveryv1.EndpointSlice
	pods    map[string]*corev1.Pod // of the namespace, by name
}

func newBackend(c Cluster, ref Ref, f Facts) backend {
	return backend{cluster: c, service: f.Service, port: servicePort(f.Service, ref.Port), slices: slicesOf(ref, f), pods: podsByName(f)}
}

func podsByName(f Facts) map[string]*corev1.Pod {
	pods := make(map[string]*corev1.Pod, len(f.Pods))
	for i := range f.Pods {
		pods[f.Pods[i].Name] = &f.Pods[i]
	}
	return pods
}

func slicesOf(ref Ref, f Facts) []discoveryv1.EndpointSlice {
	var found []discoveryv1.EndpointSlice
	for _, slice := range f.Slices {
		if slice.Labels[discoveryv1.LabelServiceName] == ref.Name {
			found = append(found, slice)
		}
	}
	return found
}

// finding is why an endpoint or a pod cannot answer.
type finding struct {
	reason Reason
	text   string
}

// first is the same finding for the same facts, in whatever order they were listed.
func first(findings []finding) finding {
	return slices.MinFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.text, b.text))
	})
}

func (b backend) judge() Verdict {
	name := fmt.Sprintf("service %q", b.service.Namespace+"/"+b.service.Name)
	endpoints := b.readyEndpoints()
	var unkept int // endpoints that no controller keeps
	var stale []finding
	for _, endpoint := range endpoints {
		if !namesPod(endpoint) && len(b.service.Spec.Selector) == 0 {
			unkept++
		} else if trouble := b.endpointTrouble(endpoint); trouble != nil {
			stale = append(stale, *trouble)
		}
	}
	if fresh := len(endpoints) - unkept - len(stale); fresh > 0 {
		return Verdict{State: Ready, Reason: EndpointsReady, Message: fmt.Sprintf("%d of %d endpoints of %s are ready", fresh, len(endpoints), name)}
	}
	if unkept > 0 {
		return b.assume(name)
	}
	if found := b.podFindings(); len(found) > 0 {
		worst := first(found)
		return *notReady(worst.reason, "%s: %s", name, worst.text)
	}
	if len(stale) > 0 {
		worst := first(stale)
		return *notReady(worst.reason, "%s has no endpoint that can answer: %s", name, worst.text)
	}
	return b.noEndpoints(name)
}

// assume judges endpoints of a Service without selector: nothing tells whether they are still true.
func (b backend) assume(name string) Verdict {
	const why = "has no selector, so nothing tells whether its endpoints are alive"
	since := b.cluster.ReadyNodeSince
	if since.IsZero() || b.cluster.Now.Sub(since) < AssumedAfter {
		return Verdict{State: Unknown, Reason: Inconclusive, Message: fmt.Sprintf("%s %s; they count as ready %s after a node became ready", name, why, AssumedAfter)}
	}
	return Verdict{State: Ready, Reason: EndpointsAssumed, Message: fmt.Sprintf("%s %s; they count as ready because a node has been ready for %s", name, why, AssumedAfter)}
}

// readyEndpoints are the endpoints that the API server would call.
func (b backend) readyEndpoints() []discoveryv1.Endpoint {
	var ready []discoveryv1.Endpoint
	for _, slice := range b.slices {
		if !b.hasPort(slice) {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready = append(ready, endpoint)
			}
		}
	}
	return ready
}

// hasPort tells whether the slice has the Service's port; they are matched by name, and the only port may have none.
func (b backend) hasPort(slice discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Ports, func(port discoveryv1.EndpointPort) bool {
		return ptr.Deref(port.Name, "") == b.port.Name && port.Port != nil
	})
}

func namesPod(endpoint discoveryv1.Endpoint) bool {
	return endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod"
}

// endpointTrouble says why an endpoint cannot answer although it is said to be ready; nil if it can.
func (b backend) endpointTrouble(endpoint discoveryv1.Endpoint) *finding {
	if !namesPod(endpoint) {
		return &finding{StaleEndpoints, "an endpoint names no pod although the service has a selector"}
	}
	pod := b.pods[endpoint.TargetRef.Name]
	if pod == nil || pod.UID != endpoint.TargetRef.UID {
		return &finding{StaleEndpoints, fmt.Sprintf("an endpoint names pod %q, which does not exist any more", endpoint.TargetRef.Name)}
	}
	if trouble := podTrouble(pod); trouble != "" {
		return &finding{StaleEndpoints, fmt.Sprintf("an endpoint names pod %q, which %s", pod.Name, trouble)}
	}
	trouble := b.cluster.nodeTrouble(pod.Spec.NodeName)
	if trouble == "" {
		return nil
	}
	reason := NodeNotReady
	if !b.cluster.hasNode(pod.Spec.NodeName) {
		reason = StaleEndpoints
	}
	return &finding{reason, fmt.Sprintf("an endpoint names pod %q, but %s", pod.Name, trouble)}
}
