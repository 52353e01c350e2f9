// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// What machine-controller-manager v0.62.1 uses, in pkg/util/provider.
const (
	machineControllerManager = "system:serviceaccount:kube-system:machine-controller-manager"
	nodeFinalizer            = "node.machine.sapcloud.io/machine-controller" // machinecontroller/controller.go
	machineRetry             = 5 * time.Second                               // machineutils.ShortRetry
	evictionRetry            = 20 * time.Second                              // drain.PodEvictionRetryInterval
)

func (m *Machines) machineControllerClient() (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(m.cp.ConfigFor(machineControllerManager, "system:masters"))
	if err != nil {
		return nil, fmt.Errorf("failed to make client: %w", err)
	}
	return client, nil
}

// addFinalizer puts machine-controller-manager's finalizer on a Node, as it does when a Node joins.
func (m *Machines) addFinalizer(ctx context.Context, node string) {
	client, err := m.machineControllerClient()
	if err != nil {
		m.log.Error(err, "Failed to add the node finalizer", "node", node)
		return
	}
	_ = wait.PollUntilContextCancel(ctx, machineRetry, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType,
			[]byte(fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, nodeFinalizer)), metav1.PatchOptions{})
		return m.observe(machineControllerManager, "patch", "nodes", node, err) == nil || apierrors.IsNotFound(err), nil
	})
}

// beginRemoval has machine-controller-manager remove a machine, whoever waits for it.
func (m *Machines) beginRemoval(k *kubelet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k.removed = make(chan struct{})
	m.removals.Go(func() { m.remove(k.removalCtx, k) })
}

// remove is what machine-controller-manager does with a machine that is labelled force-deletion (drainNode and
// deleteNodeObject in machine_util.go, RunDrain in drain.go): it cordons and evicts, which may fail and is not waited
// for, deletes the VM, and then insists on the finalizer and the Node object.
func (m *Machines) remove(ctx context.Context, k *kubelet) {
	client, err := m.machineControllerClient()
	if err != nil {
		k.setRemovalError(err)
		return
	}
	if k.ctx.Err() == nil {
		if err := m.drain(ctx, client, k.name); err != nil {
			m.log.Info("Drain failed, the machine is deleted all the same", "node", k.name, "reason", err.Error())
		}
		k.awaitIdle(ctx, m.vmDeletion)
		k.kill()
	}
	if err := wait.PollUntilContextCancel(ctx, machineRetry, true, func(ctx context.Context) (bool, error) {
		err := m.deleteNode(ctx, client, k.name)
		k.setRemovalError(err)
		return err == nil, nil
	}); err != nil {
		return // abandoned
	}
	m.forget(k)
	close(k.removed)
	m.log.Info("Machine removed", "node", k.name)
}

func (m *Machines) drain(ctx context.Context, client kubernetes.Interface, node string) error {
	ctx, cancel := context.WithTimeout(ctx, m.drainTimeout)
	defer cancel()
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	if m.observe(machineControllerManager, "patch", "nodes", node, err) != nil {
		return fmt.Errorf("failed to cordon: %w", err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("failed to list pods: %w", err)
	}
	var (
		evictions sync.WaitGroup
		mu        sync.Mutex
		failed    error
	)
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Kind == "DaemonSet" {
			continue
		}
		evictions.Go(func() {
			if err := m.evict(ctx, client, &pod); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
	}
	evictions.Wait()
	return failed
}

// evict tries the eviction once; a disruption budget that refuses it is answered with a deletion without grace 20 s
// later, any other error is left at that.
func (m *Machines) evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	err := client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
	})
	if m.observe(machineControllerManager, "create", "pods/eviction", name, err) == nil || apierrors.IsNotFound(err) {
		return nil
	}
	if !apierrors.IsTooManyRequests(err) {
		return fmt.Errorf("failed to evict pod %s: %w", name, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("failed to evict pod %s: %w", name, ctx.Err())
	case <-time.After(evictionRetry):
	}
	err = client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if m.observe(machineControllerManager, "delete", "pods", name, err) == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("failed to delete pod %s: %w", name, err)
}

// deleteNode removes the finalizer and deletes the Node object.
func (m *Machines) deleteNode(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.Contains(node.Finalizers, nodeFinalizer) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []string{nodeFinalizer}}})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if m.observe(machineControllerManager, "patch", "nodes", name, err) != nil {
			return err
		}
	}
	err = client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if m.observe(machineControllerManager, "delete", "nodes", name, err) != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
