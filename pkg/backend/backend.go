// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package backend judges from plain facts whether the backend of a webhook can answer. It asks nobody anything.
package backend

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// State of a backend.
type State string

const (
	// Ready backends can answer.
	Ready State = "Ready"
	// NotReady backends cannot.
	NotReady State = "NotReady"
	// Unknown says that the facts do not tell.
	Unknown State = "Unknown"
)

// Reason of a State, in one word.
type Reason string

const (
	// EndpointsReady (Ready): an endpoint is ready, and so is its pod, on a node that is alive.
	EndpointsReady Reason = "EndpointsReady"
	// EndpointsAssumed (Ready): the Service has no selector, and nodes have been ready for long enough.
	EndpointsAssumed Reason = "EndpointsAssumed"
	// Inconclusive (Unknown): facts could not be read, or do not tell yet.
	Inconclusive Reason = "Inconclusive"

	// NamespaceNotFound (NotReady): the namespace of the Service does not exist.
	NamespaceNotFound Reason = "NamespaceNotFound"
	// ServiceNotFound (NotReady): the Service does not exist.
	ServiceNotFound Reason = "ServiceNotFound"
	// UnsupportedServiceType (NotReady): the API server calls no webhook through a Service of this type.
	UnsupportedServiceType Reason = "UnsupportedServiceType"
	// ServicePortNotFound (NotReady): the Service does not have the port.
	ServicePortNotFound Reason = "ServicePortNotFound"
	// NoReadyEndpoints (NotReady): no endpoint of the Service is ready.
	NoReadyEndpoints Reason = "NoReadyEndpoints"
	// StaleEndpoints (NotReady): endpoints say that they are ready, but their pods are not.
	StaleEndpoints Reason = "StaleEndpoints"
	// NodeNotReady (NotReady): no node, or not the node of the pods, has renewed its lease lately.
	NodeNotReady Reason = "NodeNotReady"
	// BackendUnschedulable (NotReady): the scheduler finds no node for a pod.
	BackendUnschedulable Reason = "BackendUnschedulable"
	// BackendCrashLooping (NotReady): a container ends again and again.
	BackendCrashLooping Reason = "BackendCrashLooping"
	// TunnelDown (NotReady): the API server reaches no backend, because the pods of the tunnel are not ready.
	TunnelDown Reason = "TunnelDown"
)

// Verdict on a backend.
type Verdict struct {
	// State of the backend.
	State State
	// Reason of State.
	Reason Reason
	// Message says it in one sentence, in the words of the scheduler or the kubelet where there are any. It stays the same
	// as long as the facts do.
	Message string
	// Members are the running containers of the pods that the Service selects or that its endpoints name, as
	// podUID/containerID, sorted. One that is missing later tells that a pod or a process has ended. Nil means that
	// facts could not be read; none at all is an empty list.
	Members []string
}

// Ref names a backend.
type Ref struct {
	// Namespace of the Service.
	Namespace string
	// Name of the Service.
	Name string
	// Port of the Service, by number.
	Port int32
}

const (
	// LeaseFreshness is how old the last renewal of a node's lease may be. kubelets renew it every ten seconds; Gardener's
	// default for the node monitor's grace period is 40 s.
	LeaseFreshness = 40 * time.Second
	// AssumedAfter is how long nodes must have been ready before endpoints that no controller keeps count as ready.
	AssumedAfter = 5 * time.Minute
)

// Cluster holds the facts that all backends of a cluster share.
type Cluster struct {
	// Now is the time by the API server's clock.
	Now time.Time
	// Nodes of the cluster.
	Nodes []corev1.Node
	// NodeLeases are the last renewals of the leases in kube-node-lease, by node.
	NodeLeases map[string]time.Time
	// TunnelPods are the pods labelled app=vpn-shoot in kube-system.
	TunnelPods []corev1.Pod
	// ReadyNodeSince is since when there has been a ready node without a break; zero if there is none.
	ReadyNodeSince time.Time
	// Err says that these facts could not be read.
	Err error
}

// FreshNode tells whether a node has renewed its lease within LeaseFreshness. A kubelet's clock ahead of the API server's
// does no harm.
func (c Cluster) FreshNode() bool {
	return slices.ContainsFunc(c.Nodes, func(node corev1.Node) bool { return c.fresh(node.Name) })
}

// ReadyNode tells whether a node is Ready and has renewed its lease within LeaseFreshness.
func (c Cluster) ReadyNode() bool {
	return slices.ContainsFunc(c.Nodes, func(node corev1.Node) bool {
		return c.fresh(node.Name) && slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		})
	})
}

// TunnelUp tells whether a pod of the tunnel is ready. Without any such pod no tunnel is expected, and it is up.
func (c Cluster) TunnelUp() bool {
	return len(c.TunnelPods) == 0 || slices.ContainsFunc(c.TunnelPods, func(pod corev1.Pod) bool {
		return podTrouble(&pod) == "" && (pod.Spec.NodeName == "" || c.nodeTrouble(pod.Spec.NodeName) == "")
	})
}

func (c Cluster) fresh(node string) bool {
	renewed, found := c.NodeLeases[node]
	return found && c.Now.Sub(renewed) <= LeaseFreshness
}

// nodeTrouble says why nothing can be running on a node; empty if it is alive.
func (c Cluster) nodeTrouble(name string) string {
	switch {
	case !c.hasNode(name):
		return fmt.Sprintf("node %q does not exist", name)
	case !c.fresh(name):
		return fmt.Sprintf("node %q has not renewed its lease for %s", name, LeaseFreshness)
	}
	return ""
}

func (c Cluster) hasNode(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(node corev1.Node) bool { return node.Name == name })
}

// trouble says why no backend at all can be reached: nil if some can.
func (c Cluster) trouble() *Verdict {
	switch {
	case len(c.Nodes) == 0:
		return notReady(NodeNotReady, "the cluster has no node")
	case !c.FreshNode():
		return notReady(NodeNotReady, "none of the cluster's nodes has renewed its lease for %s", LeaseFreshness)
	case !c.TunnelUp():
		return notReady(TunnelDown, "the API server reaches no backend: none of the pods labelled app=vpn-shoot in kube-system is ready")
	}
	return nil
}

// Facts about one backend.
type Facts struct {
	// NamespaceFound says that the namespace of the Service exists.
	NamespaceFound bool
	// Service is nil if it does not exist.
	Service *corev1.Service
	// Slices are EndpointSlices of the namespace; those of other Services are ignored.
	Slices []discoveryv1.EndpointSlice
	// Pods of the namespace.
	Pods []corev1.Pod
	// Err says that these facts could not be read.
	Err error
}

// Judge returns the verdict on the backend that ref names. What could not be read makes it Unknown; without a node that is
// alive, or with the tunnel down, every backend is NotReady.
func Judge(c Cluster, ref Ref, f Facts) Verdict {
	if c.Err != nil {
		return Verdict{State: Unknown, Reason: Inconclusive, Message: fmt.Sprintf("the cluster's nodes could not be read: %v", c.Err)}
	}
	if f.Err != nil {
		if trouble := c.trouble(); trouble != nil {
			return *trouble
		}
		return Verdict{State: Unknown, Reason: Inconclusive, Message: fmt.Sprintf("the state of service \"%s/%s\" could not be read: %v", ref.Namespace, ref.Name, f.Err)}
	}
	v := resolve(ref, f)
	if v == nil {
		v = c.trouble()
	}
	if v == nil {
		v = ptr.To(newBackend(c, ref, f).judge())
	}
	v.Members = members(ref, f)
	return *v
}

// resolve says why the API server cannot resolve the Service; nil if it can. It follows the API server's own
// ResolveEndpoint (k8s.io/apiserver/pkg/util/proxy).
func resolve(ref Ref, f Facts) *Verdict {
	switch {
	case !f.NamespaceFound:
		return notReady(NamespaceNotFound, "namespace %q does not exist", ref.Namespace)
	case f.Service == nil:
		return notReady(ServiceNotFound, "service \"%s/%s\" does not exist", ref.Namespace, ref.Name)
	case f.Service.Spec.Type == corev1.ServiceTypeExternalName:
		return notReady(UnsupportedServiceType, "service \"%s/%s\" is of the type ExternalName, through which no webhook is called", ref.Namespace, ref.Name)
	case servicePort(f.Service, ref.Port) == nil:
		return notReady(ServicePortNotFound, "service \"%s/%s\" has no port %d", ref.Namespace, ref.Name, ref.Port)
	}
	return nil
}

func servicePort(service *corev1.Service, number int32) *corev1.ServicePort {
	if i := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == number }); i >= 0 {
		return &service.Spec.Ports[i]
	}
	return nil
}

func notReady(reason Reason, format string, args ...any) *Verdict {
	return &Verdict{State: NotReady, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
