// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What podTrouble says of a pod.
const (
	terminating = "is terminating"
	ended       = "has ended"
	unready     = "is not ready"
)

// podTrouble says why a pod cannot answer by its own status; empty if it can.
func podTrouble(pod *corev1.Pod) string {
	ready := podCondition(pod, corev1.PodReady)
	switch {
	case pod.DeletionTimestamp != nil:
		return terminating
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return ended
	case ready == nil || ready.Status != corev1.ConditionTrue:
		return unready
	}
	return ""
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podFindings are what the kubelet or the scheduler says about pods of the Service that do not come up.
func (b backend) podFindings() []finding {
	var found []finding
	for _, pod := range selected(b.service, b.pods) {
		if podTrouble(pod) != unready {
			continue
		}
		if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
			found = append(found, finding{BackendUnschedulable, fmt.Sprintf("pod %q is not scheduled: %s", pod.Name, scheduled.Message)})
		}
		// What a kubelet that is gone said last is no news.
		if b.cluster.nodeTrouble(pod.Spec.NodeName) != "" {
			continue
		}
		for _, status := range containerStatuses(pod) {
			if waiting := status.State.Waiting; waiting != nil && waiting.Reason == "CrashLoopBackOff" {
				found = append(found, finding{BackendCrashLooping, fmt.Sprintf("container %q of pod %q: %s", status.Name, pod.Name, waiting.Message)})
			}
		}
	}
	return found
}

// noEndpoints says as well as it can why no endpoint is ready.
func (b backend) noEndpoints(name string) Verdict {
	pods := selected(b.service, b.pods)
	var lost, waiting []finding
	for _, pod := range pods {
		if podTrouble(pod) == terminating {
			continue
		}
		if trouble := b.cluster.nodeTrouble(pod.Spec.NodeName); pod.Spec.NodeName != "" && trouble != "" {
			lost = append(lost, finding{NodeNotReady, fmt.Sprintf("%s of pod %q", trouble, pod.Name)})
			continue
		}
		for _, status := range containerStatuses(pod) {
			if w := status.State.Waiting; w != nil {
				waiting = append(waiting, finding{NoReadyEndpoints, fmt.Sprintf("container %q of pod %q waits: %s %s", status.Name, pod.Name, w.Reason, w.Message)})
			}
		}
	}
	switch {
	case len(b.service.Spec.Selector) == 0:
		return *notReady(NoReadyEndpoints, "%s has neither a selector nor a ready endpoint for its port %d", name, b.port.Port)
	case len(pods) == 0:
		return *notReady(NoReadyEndpoints, "no pod matches the selector of %s", name)
	case len(lost) > 0:
		return *notReady(NodeNotReady, "%s has no ready endpoint: %s", name, first(lost).text)
	case len(waiting) > 0:
		return *notReady(NoReadyEndpoints, "%s has no ready endpoint: %s", name, first(waiting).text)
	}
	return *notReady(NoReadyEndpoints, "%s has no ready endpoint for its port %d; its selector matches %d pods", name, b.port.Port, len(pods))
}

// selected are the pods that a Service selects; one without a selector selects none.
func selected(service *corev1.Service, pods map[string]*corev1.Pod) []*corev1.Pod {
	if service == nil || len(service.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	var found []*corev1.Pod
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, pod)
		}
	}
	return found
}

func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// members are described at Verdict.
func members(ref Ref, f Facts) []string {
	pods := podsByName(f)
	behind := selected(f.Service, pods)
	for _, slice := range slicesOf(ref, f) {
		for _, endpoint := range slice.Endpoints {
			if !namesPod(endpoint) {
				continue
			}
			if pod := pods[endpoint.TargetRef.Name]; pod != nil && pod.UID == endpoint.TargetRef.UID {
				behind = append(behind, pod)
			}
		}
	}
	found := []string{}
	for _, pod := range behind {
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Running != nil {
				found = append(found, string(pod.UID)+"/"+status.ContainerID)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
