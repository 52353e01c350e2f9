// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// What a kubelet of v1.36 uses by default.
const (
	leaseSeconds    = 40
	leaseRenewal    = 10 * time.Second
	nodeSyncPeriod  = 10 * time.Second
	registerBackoff = 200 * time.Millisecond // pkg/kubelet/kubelet_node_status.go doubles 100 ms up to 7 s
	registerCap     = 7 * time.Second
)

// Networks of pods and nodes. Their addresses are names in the tunnel, nothing dials them.
const (
	podNetwork  = "100.64.0.0/16"
	nodeNetwork = "10.250.0.0/16"
)

// kubelet is one machine: it registers its Node, keeps its lease and runs its pods.
type kubelet struct {
	machines     *Machines
	name, hostIP string
	user         string
	client       kubernetes.Interface

	ctx     context.Context // the VM's life
	cancel  context.CancelFunc
	running sync.WaitGroup

	removalCtx  context.Context // until it is abandoned
	stopRemoval context.CancelFunc
	removed     chan struct{} // nil until its removal begins, closed at its end; guarded by machines.mu

	mu         sync.Mutex
	dead       bool // kill has been called
	workers    map[types.UID]*podWorker
	podIPs     netip.Addr // the last one given out
	removalErr error
}

func newKubelet(m *Machines, name string, number int) *kubelet {
	k := &kubelet{machines: m, name: name, user: "system:node:" + name, workers: map[types.UID]*podWorker{}}
	host, pods := netip.MustParsePrefix(nodeNetwork).Addr().As4(), netip.MustParsePrefix(podNetwork).Addr().As4()
	host[2], host[3] = byte(number>>8), byte(number)
	pods[2] = byte(number) // 256 pods for each of 256 machines; the numbers of machines long gone come again
	k.hostIP, k.podIPs = netip.AddrFrom4(host).String(), netip.AddrFrom4(pods)
	return k
}

func (k *kubelet) start(ctx context.Context) {
	k.ctx, k.cancel = context.WithCancel(ctx)
	k.removalCtx, k.stopRemoval = context.WithCancel(ctx)
	k.running.Go(func() { k.run(k.ctx) })
}

// kill ends the VM and everything on it and returns when nothing of it runs.
func (k *kubelet) kill() {
	k.mu.Lock()
	k.dead = true
	k.mu.Unlock()
	k.cancel()
	k.running.Wait()
}

// removalError is what the removal of the machine last failed with.
func (k *kubelet) removalError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.removalErr
}

func (k *kubelet) setRemovalError(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removalErr = err
}

func (k *kubelet) run(ctx context.Context) {
	config := k.machines.cp.ConfigFor(k.user, "system:nodes")
	config.UserAgent = "kubelet"
	var err error
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		k.machines.log.Error(err, "Failed to make client of kubelet", "node", k.name)
		return
	}
	if !k.insist(ctx, "create", "nodes", k.name, k.register) {
		return
	}
	k.machines.log.V(1).Info("Node registered", "node", k.name)
	k.running.Go(func() { k.machines.addFinalizer(ctx, k.name) })
	k.running.Go(func() { k.keepLease(ctx) })
	k.running.Go(func() { wait.UntilWithContext(ctx, k.syncNode, nodeSyncPeriod) })
	go k.watchPods(ctx) // not waited for: it may sleep for seconds before it heeds ctx
}

// observe records what the API server refused to this kubelet.
func (k *kubelet) observe(verb, resource, name string, err error) error {
	return k.machines.observe(k.user, verb, resource, name, err)
}

// insist tries a request until it succeeds, and returns false if ctx ends before.
func (k *kubelet) insist(ctx context.Context, verb, resource, name string, request func(context.Context) error) bool {
	backoff := wait.Backoff{Duration: registerBackoff, Factor: 2, Steps: 1 << 30, Cap: registerCap}
	for {
		if k.observe(verb, resource, name, request(ctx)) == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(backoff.Step()):
		}
	}
}

func (k *kubelet) register(ctx context.Context) error {
	_, err := k.client.CoreV1().Nodes().Create(ctx, k.node(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (k *kubelet) node() *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: k.name, Labels: map[string]string{
			corev1.LabelHostname:   k.name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64",
			// As Gardener labels the nodes of a pool.
			"worker.gardener.cloud/pool": "pool",
		}},
		Spec: corev1.NodeSpec{ProviderID: "bench:///" + k.name},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: k.nodeConditions(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: k.hostIP}, {Type: corev1.NodeHostName, Address: k.name},
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

func (k *kubelet) nodeConditions() []corev1.NodeCondition {
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
}

func nodeCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// syncNode posts the Node's status again if it is no longer Ready: kube-controller-manager sets it to Unknown after a
// lease was not renewed in time. A Node object that was deleted is not created again, as by a kubelet that runs.
func (k *kubelet) syncNode(ctx context.Context) {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return
	}
	if ready := nodeCondition(node, corev1.NodeReady); ready != nil && ready.Status == corev1.ConditionTrue {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": k.nodeConditions()}})
	if err != nil {
		return
	}
	_, err = k.client.CoreV1().Nodes().PatchStatus(ctx, k.name, patch)
	_ = k.observe("patch", "nodes/status", k.name, err)
}

func (k *kubelet) keepLease(ctx context.Context) {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	var lease *coordinationv1.Lease
	if !k.insist(ctx, "create", "leases", corev1.NamespaceNodeLease+"/"+k.name, func(ctx context.Context) error {
		node, err := k.client.CoreV1().Nodes().Get(ctx, k.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: corev1.NamespaceNodeLease, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &k.name, LeaseDurationSeconds: ptr.To[int32](leaseSeconds), RenewTime: ptr.To(metav1.NowMicro()),
			},
		}, metav1.CreateOptions{})
		return err
	}) {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		// Renewal is an update with the version of the last answer, read again after a conflict.
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			renewed, err = leases.Get(ctx, k.name, metav1.GetOptions{})
		}
		if k.observe("update", "leases", corev1.NamespaceNodeLease+"/"+k.name, err) == nil {
			lease = renewed
		}
	}, leaseRenewal)
}

// watchPods keeps a worker for each pod that is bound to the node, until ctx ends.
func (k *kubelet) watchPods(ctx context.Context) {
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(k.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
			fields.OneTermEqualSelector("spec.nodeName", k.name)),
		ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { k.podChanged(o, false) },
			UpdateFunc: func(_, o any) { k.podChanged(o, false) },
			DeleteFunc: func(o any) { k.podChanged(o, true) },
		},
	})
	controller.RunWithContext(ctx)
}

func (k *kubelet) podChanged(object any, gone bool) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[pod.UID]
	if w == nil {
		if gone || k.dead {
			return
		}
		k.podIPs = k.podIPs.Next()
		w = newPodWorker(k, pod, k.podIPs.String())
		k.workers[pod.UID] = w
		k.running.Go(func() {
			w.run(k.ctx)
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.workers, pod.UID)
		})
		return
	}
	w.update(pod, gone)
}

// awaitIdle returns when no process is left on the node and the API server knows the end of each pod that was to end,
// when limit has passed, or when ctx ends.
func (k *kubelet) awaitIdle(ctx context.Context, limit time.Duration) {
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, w := range k.workers {
			if pod, _ := w.observed(); w.hasProcess() || pod.DeletionTimestamp != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

func describe(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
