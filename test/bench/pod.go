// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	probePeriod = time.Second
	// removedGrace is what a process gets whose pod object was deleted by force: a kubelet allows at least 1 s
	// (minimumGracePeriodInSeconds in pkg/kubelet/kuberuntime).
	removedGrace = time.Second
	// A process that ends is started again after restartBackoff, doubled up to restartCap (a kubelet's cap; it begins
	// with 10 s).
	restartBackoff = time.Second
	restartCap     = 5 * time.Minute
)

// podWorker runs one pod. What is not guarded by mu belongs to the goroutine of run.
type podWorker struct {
	kubelet *kubelet
	status  *statusWriter
	wake    chan struct{}

	mu      sync.Mutex
	pod     *corev1.Pod
	gone    bool
	process Process

	state     podState
	startFrom time.Time // the process is not started before
	probeFrom time.Time // and not asked before
	backoff   time.Duration
}

func newPodWorker(k *kubelet, pod *corev1.Pod, ip string) *podWorker {
	return &podWorker{
		kubelet: k, pod: pod, wake: make(chan struct{}, 1), backoff: restartBackoff,
		status: newStatusWriter(k, pod), state: podState{ip: ip, hostIP: k.hostIP},
	}
}

// update tells the worker what the API server says of its pod now.
func (w *podWorker) update(pod *corev1.Pod, gone bool) {
	w.mu.Lock()
	w.pod, w.gone = pod, gone
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *podWorker) observed() (*corev1.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod, w.gone
}

func (w *podWorker) hasProcess() bool { return w.current() != nil }

func (w *podWorker) current() Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process
}

func (w *podWorker) set(p Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.process = p
}

// run keeps the pod running until it is deleted or the VM ends.
func (w *podWorker) run(ctx context.Context) {
	statusCtx, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	writing.Go(func() { w.status.run(statusCtx) })
	defer writing.Wait()
	defer cancel()
	tick := time.NewTicker(probePeriod)
	defer tick.Stop()
	for {
		pod, gone := w.observed()
		switch {
		case ctx.Err() != nil:
			w.lose()
			return
		case gone || pod.DeletionTimestamp != nil:
			w.terminate(ctx)
			w.confirm(ctx)
			return
		}
		w.sync(ctx, pod)
		var ended <-chan struct{}
		if p := w.current(); p != nil {
			ended = p.Done()
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-ended:
		case <-tick.C:
		}
	}
}

// sync brings process and status one step forward.
func (w *podWorker) sync(ctx context.Context, pod *corev1.Pod) {
	p := w.current()
	if p == nil {
		if w.startFrom.After(time.Now()) || !w.start(ctx, pod) {
			return
		}
		p = w.current()
	}
	select {
	case <-p.Done():
		w.crashed(pod)
		return
	default:
	}
	ready := !w.probeFrom.After(time.Now()) && probe(ctx, pod, p.Ports())
	if ready != w.state.ready || !w.state.published {
		w.state.setReady(ready)
		w.publish(pod)
	}
}

// start returns true if a process was started.
func (w *podWorker) start(ctx context.Context, pod *corev1.Pod) bool {
	m := w.kubelet.machines
	runner := m.runner(pod)
	if runner == nil {
		return false
	}
	p, err := runner.Start(ctx, pod, w.kubelet.name)
	if err != nil {
		m.log.Info("Process not started", "pod", describe(pod), "reason", err.Error())
		w.later()
		return false
	}
	w.set(p)
	w.state.begun()
	m.tunnel.mapPod(w.state.ip, p.Ports())
	w.probeFrom = time.Now()
	if m.keepProbeDelays {
		w.probeFrom = w.probeFrom.Add(probeDelay(pod))
	}
	m.log.V(1).Info("Process started", "pod", describe(pod), "node", w.kubelet.name, "pid", p.Pid())
	go func() {
		<-p.Done()
		m.recordEnd(pod, time.Now())
	}()
	return true
}

// later puts the next start off.
func (w *podWorker) later() {
	w.startFrom = time.Now().Add(w.backoff)
	w.backoff = min(2*w.backoff, restartCap)
}

// crashed is the end of a process that nobody asked for.
func (w *podWorker) crashed(pod *corev1.Pod) {
	w.kubelet.machines.log.Info("Process ended on its own", "pod", describe(pod))
	w.set(nil)
	w.later()
	w.state.crashed()
	w.publish(pod)
}

func (w *podWorker) publish(pod *corev1.Pod) {
	w.state.published = true
	w.status.write(w.state.status(pod))
}

// lose is the end of the VM.
func (w *podWorker) lose() {
	w.kubelet.machines.tunnel.losePod(w.state.ip)
	if p := w.current(); p != nil {
		p.Kill()
		w.set(nil)
	}
}

// terminate ends the process within the grace period, which a second deletion may shorten, and at once if the VM ends.
func (w *podWorker) terminate(ctx context.Context) {
	p := w.current()
	if p == nil {
		return
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop(w.grace())
	}()
	for {
		select {
		case <-stopped:
			w.set(nil)
			w.kubelet.machines.tunnel.unmapPod(w.state.ip)
			return
		case <-ctx.Done():
			w.lose()
			<-stopped
			return
		case <-time.After(w.grace()):
			p.Kill()
		case <-w.wake:
		}
	}
}

// grace is the time left until the process must have ended.
func (w *podWorker) grace() time.Duration {
	pod, gone := w.observed()
	if gone {
		return removedGrace
	}
	// The API server's DeletionTimestamp is the time of the request plus the grace period, in whole seconds.
	return max(time.Until(pod.DeletionTimestamp.Time), removedGrace)
}

// confirm tells the API server that the pod has ended: first its status, then a deletion without grace, each until it
// is accepted or the VM ends; and returns when the object is gone.
func (w *podWorker) confirm(ctx context.Context) {
	pod, gone := w.observed()
	if gone || ctx.Err() != nil {
		return
	}
	if w.state.published {
		w.state.ended()
		final := w.state.status(pod)
		if !w.kubelet.insist(ctx, "patch", "pods/status", describe(pod), func(ctx context.Context) error {
			err := w.status.patch(ctx, final)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}) {
			return
		}
	}
	if !w.kubelet.insist(ctx, "delete", "pods", describe(pod), func(ctx context.Context) error {
		err := w.kubelet.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or of another uid
			return nil
		}
		return err
	}) {
		return
	}
	for !gone {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			_, gone = w.observed()
		}
	}
}
