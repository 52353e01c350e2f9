// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// podState is what a pod's status is made of.
type podState struct {
	ip, hostIP string
	published  bool // the API server has been told something
	started    metav1.Time
	running    bool
	ready      bool
	readySince metav1.Time
	restarts   int32
	process    metav1.Time // when the process began
	lastEnd    *metav1.Time
	over       bool // terminated for good
}

// begun: a process was started.
func (s *podState) begun() {
	now := metav1.Now()
	if s.started.IsZero() {
		s.started, s.readySince = now, now
	}
	s.running, s.process, s.published = true, now, false
}

func (s *podState) setReady(ready bool) {
	if s.ready != ready {
		s.ready, s.readySince = ready, metav1.Now()
	}
}

// crashed: the process ended on its own and will be started again.
func (s *podState) crashed() {
	s.setReady(false)
	s.running, s.lastEnd = false, ptr.To(metav1.Now())
	s.restarts++
}

// ended: the process was asked to end and has.
func (s *podState) ended() {
	s.setReady(false)
	s.running, s.over = false, true
}

// status is the part of a pod's status that a kubelet writes.
func (s *podState) status(pod *corev1.Pod) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &s.started,
		HostIP: s.hostIP, HostIPs: []corev1.HostIP{{IP: s.hostIP}},
		PodIP: s.ip, PodIPs: []corev1.PodIP{{IP: s.ip}},
	}
	if s.over {
		status.Phase = corev1.PodSucceeded
	}
	for _, c := range []struct {
		kind  corev1.PodConditionType
		holds bool
		since metav1.Time
	}{
		{corev1.PodReadyToStartContainers, !s.over, s.started},
		{corev1.PodInitialized, true, s.started},
		{corev1.ContainersReady, s.ready, s.readySince},
		{corev1.PodReady, s.ready, s.readySince},
	} {
		condition := corev1.PodCondition{Type: c.kind, Status: corev1.ConditionTrue, LastTransitionTime: c.since}
		if !c.holds {
			condition.Status = corev1.ConditionFalse
		}
		if !c.holds && (c.kind == corev1.PodReady || c.kind == corev1.ContainersReady) {
			condition.Reason = "ContainersNotReady"
		}
		status.Conditions = append(status.Conditions, condition)
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, s.container(pod, container))
	}
	return status
}

func (s *podState) container(pod *corev1.Pod, container corev1.Container) corev1.ContainerStatus {
	id := fmt.Sprintf("bench://%s/%s/%d", pod.UID, container.Name, s.restarts)
	status := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image, ContainerID: id,
		Ready: s.ready, Started: &s.running, RestartCount: s.restarts,
	}
	if s.lastEnd != nil {
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: s.process, FinishedAt: *s.lastEnd,
		}
	}
	switch {
	case s.over:
		status.State.Terminated = &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: s.process, FinishedAt: metav1.Now(), ContainerID: id,
		}
	case s.running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: s.process}
	default:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}
	return status
}

// statusWriter writes the newest status of a pod, away from the pod's worker: a webhook may hold a write for seconds,
// in which the worker goes on asking the process.
type statusWriter struct {
	kubelet *kubelet
	pod     *corev1.Pod // for its name and uid
	latest  chan corev1.PodStatus
}

func newStatusWriter(k *kubelet, pod *corev1.Pod) *statusWriter {
	return &statusWriter{kubelet: k, pod: pod, latest: make(chan corev1.PodStatus, 1)}
}

// write replaces a status that waits to be written. Only one goroutine may call it.
func (w *statusWriter) write(status corev1.PodStatus) {
	select {
	case <-w.latest:
	default:
	}
	w.latest <- status
}

func (w *statusWriter) run(ctx context.Context) {
	for {
		var status corev1.PodStatus
		select {
		case <-ctx.Done():
			return
		case status = <-w.latest:
		}
		for {
			err := w.patch(ctx, status)
			if w.kubelet.observe("patch", "pods/status", describe(w.pod), err) == nil || apierrors.IsNotFound(err) {
				break
			}
			select {
			case <-ctx.Done():
				return
			case status = <-w.latest:
			case <-time.After(time.Second):
			}
		}
	}
}

func (w *statusWriter) patch(ctx context.Context, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.pod.UID}, // refused if another pod has this name now
		"status":   status,
	})
	if err != nil {
		return fmt.Errorf("failed to encode status: %w", err)
	}
	_, err = w.kubelet.client.CoreV1().Pods(w.pod.Namespace).Patch(ctx, w.pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}
