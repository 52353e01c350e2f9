// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Runner turns pods into processes.
type Runner interface {
	// Matches says whether the Runner is for a pod. The first one that was registered and matches is used.
	Matches(pod *corev1.Pod) bool
	// Start starts the pod's process. An error is retried with back-off. The process is not tied to ctx.
	Start(ctx context.Context, pod *corev1.Pod, node string) (Process, error)
}

// Process is what runs for a pod.
type Process interface {
	// Ports maps container ports to loopback ports.
	Ports() map[int32]int
	// Pid is 0 if the process is a part of this one.
	Pid() int
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Stop asks the process to end, ends it by force after grace, and returns when it has ended.
	Stop(grace time.Duration)
	// Kill ends the process at once and returns when it has ended.
	Kill()
}

// Blocked is a request of a kubelet or of machine-controller-manager that the API server answered with an error.
type Blocked struct {
	User, Verb, Resource string
	// Name is the object's, with its namespace before a slash if it has one.
	Name string
	// Text is the API server's.
	Text string
	// First and Last are when the answer came for the first and for the last time, Count how often it came.
	First, Last time.Time
	Count       int
}

// Machines is a pool of machines: a machine is a Node whose kubelet runs pods as processes of this host, and
// machine-controller-manager's part in its life.
type Machines struct {
	cp              *ControlPlane
	tunnel          *Tunnel
	log             logr.Logger
	dir, pool       string
	keepProbeDelays bool
	drainTimeout    time.Duration
	vmDeletion      time.Duration

	ctx      context.Context // the bench's life
	cancel   context.CancelFunc
	scaling  sync.Mutex // one Scale at a time
	removals sync.WaitGroup

	mu       sync.Mutex
	kubelets []*kubelet
	runners  []Runner
	numbers  int // machines so far
	blocked  []Blocked
	ended    []endedPod
}

type endedPod struct {
	pod *corev1.Pod
	at  time.Time
}

func newMachines(b *Bench, o Options) *Machines {
	// The machines outlive the context New was called with.
	ctx, cancel := context.WithCancel(context.Background())
	m := &Machines{
		cp: b.Shoot, tunnel: b.Tunnel, log: b.Log, dir: filepath.Join(b.Dir, "log"), pool: b.Namespace + "-pool-z1",
		keepProbeDelays: o.KeepProbeDelays, drainTimeout: o.DrainTimeout, vmDeletion: o.VMDeletion,
		ctx: logr.NewContext(ctx, b.Log.V(1)), cancel: cancel,
	}
	m.Register(vpnRunner{tunnel: b.Tunnel})
	return m
}

// Register makes a Runner known. Pods that no Runner matches stay Pending.
func (m *Machines) Register(r Runner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runners = append(m.runners, r)
}

// Scale brings the pool to n machines. New ones have new names and run when it returns, but their Nodes may not be
// Ready or even registered: see WaitReady. Superfluous ones, the oldest first, are removed as machine-controller-manager
// does it on hibernation: once begun, their removal goes on until their Node objects are gone. Scale waits for that, or
// returns an error when ctx ends before. A machine whose VM was killed counts until it is removed.
func (m *Machines) Scale(ctx context.Context, n int) error {
	m.scaling.Lock()
	defer m.scaling.Unlock()
	staying, leaving := m.partition()
	for range n - len(staying) {
		m.create()
	}
	if len(staying) <= n {
		return nil
	}
	for _, k := range staying[:len(staying)-n] {
		m.beginRemoval(k)
		leaving = append(leaving, k)
	}
	for _, k := range leaving {
		select {
		case <-k.removed:
		case <-ctx.Done():
			return fmt.Errorf("failed to remove machine %s: %w", k.name, errors.Join(ctx.Err(), k.removalError()))
		}
	}
	return nil
}

// partition returns the machines that are not, and those that are being removed.
func (m *Machines) partition() (staying, leaving []*kubelet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kubelets {
		if k.removed == nil {
			staying = append(staying, k)
		} else {
			leaving = append(leaving, k)
		}
	}
	return staying, leaving
}

func (m *Machines) create() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbers++
	k := newKubelet(m, fmt.Sprintf("%s-%s-%s", m.pool, utilrand.String(5), utilrand.String(5)), m.numbers)
	m.kubelets = append(m.kubelets, k)
	k.start(m.ctx)
	m.log.Info("Machine created", "node", k.name)
}

// Nodes are the names of the machines whose VM runs, the oldest first.
func (m *Machines) Nodes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, k := range m.kubelets {
		if k.ctx.Err() == nil {
			names = append(names, k.name)
		}
	}
	return names
}

// WaitReady waits until the Nodes of all machines whose VM runs are Ready.
func (m *Machines) WaitReady(ctx context.Context) error {
	admin, err := kubernetes.NewForConfig(m.cp.Config())
	if err != nil {
		return fmt.Errorf("failed to make client: %w", err)
	}
	var last string
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, name := range m.Nodes() {
			node, err := admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				last = err.Error()
				return false, nil
			}
			if condition := nodeCondition(node, corev1.NodeReady); condition == nil || condition.Status != corev1.ConditionTrue {
				last = fmt.Sprintf("node %s is not ready", name)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("failed to see all nodes ready (%s): %w", last, err)
	}
	return nil
}

// Kill is the loss of a VM: its processes end at once, packets to its pods get lost, its lease is no longer renewed;
// its Node object and its pods stay.
func (m *Machines) Kill(node string) {
	m.mu.Lock()
	i := slices.IndexFunc(m.kubelets, func(k *kubelet) bool { return k.name == node })
	if i < 0 {
		m.mu.Unlock()
		return
	}
	k := m.kubelets[i]
	m.mu.Unlock()
	k.kill()
}

// Abandon loses all VMs and forgets the machines without a request to the API server: what is left of them there is
// the caller's to delete.
func (m *Machines) Abandon() {
	m.mu.Lock()
	all := m.kubelets
	m.kubelets = nil
	m.mu.Unlock()
	for _, k := range all {
		k.stopRemoval()
		k.kill()
	}
}

// close ends all machines and everything that runs on them.
func (m *Machines) close() {
	m.cancel()
	m.Abandon()
	m.removals.Wait()
}

func (m *Machines) forget(gone *kubelet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kubelets = slices.DeleteFunc(m.kubelets, func(k *kubelet) bool { return k == gone })
}

func (m *Machines) runner(pod *corev1.Pod) Runner {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.runners {
		if r.Matches(pod) {
			return r
		}
	}
	return nil
}

// Blocked returns what the API server refused to kubelets and machine-controller-manager since the start or
// ResetBlocked, equal refusals counted together, in the order of their first time. Conflicts and missing objects are
// not refusals, nor is an API server that does not answer.
func (m *Machines) Blocked() []Blocked {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.blocked)
}

// ResetBlocked forgets what was blocked so far.
func (m *Machines) ResetBlocked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocked = nil
}

// observe records err if the API server answered with it, and returns it.
func (m *Machines) observe(user, verb, resource, name string, err error) error {
	if !answered(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for i, known := range m.blocked {
		if known.User == user && known.Verb == verb && known.Resource == resource && known.Name == name && known.Text == err.Error() {
			m.blocked[i].Last = now
			m.blocked[i].Count++
			return err
		}
	}
	m.blocked = append(m.blocked, Blocked{
		User: user, Verb: verb, Resource: resource, Name: name, Text: err.Error(), First: now, Last: now, Count: 1,
	})
	m.log.Info("Blocked", "user", user, "verb", verb, "resource", resource, "name", name, "text", err.Error())
	return err
}

func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func (m *Machines) recordEnd(pod *corev1.Pod, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, endedPod{pod: pod, at: at})
}

// Ended is when the last process of a matching pod ended, however it ended; zero if none has.
func (m *Machines) Ended(match func(*corev1.Pod) bool) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var last time.Time
	for _, e := range m.ended {
		if match(e.pod) && e.at.After(last) {
			last = e.at
		}
	}
	return last
}
