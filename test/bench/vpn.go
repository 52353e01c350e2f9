// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	vpnName = "vpn-shoot"
	vpnPort = 8080
)

// vpnDeployment stands for Gardener's vpn-shoot, with the name, namespace and label of
// pkg/component/networking/vpn/shoot in v1.149.3.
func vpnDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": vpnName}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: vpnName, Namespace: metav1.NamespaceSystem, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					PriorityClassName: "system-cluster-critical",
					Containers: []corev1.Container{{
						Name: vpnName, Image: vpnName,
						Ports: []corev1.ContainerPort{{ContainerPort: vpnPort}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
							HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(vpnPort)},
						}},
					}},
				},
			},
		},
	}
}

// vpnRunner runs pods of vpn-shoot inside this process: they connect the tunnel and are Ready while it works.
type vpnRunner struct{ tunnel *Tunnel }

func (r vpnRunner) Matches(pod *corev1.Pod) bool {
	return pod.Namespace == metav1.NamespaceSystem && pod.Labels["app"] == vpnName
}

func (r vpnRunner) Start(context.Context, *corev1.Pod, string) (Process, error) {
	p, err := serveInProcess(vpnPort, nil, http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		if !r.tunnel.Works() {
			response.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	if err != nil {
		return nil, err
	}
	r.tunnel.connect(+1)
	go func() {
		<-p.Done()
		r.tunnel.connect(-1)
	}()
	return p, nil
}

// waitFor polls until object satisfies done, which is asked only after a successful read.
func waitFor(ctx context.Context, c client.Client, object client.Object, what string, done func() bool) error {
	key := client.ObjectKeyFromObject(object)
	var last error
	for {
		if last = c.Get(ctx, key, object); last == nil && done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to see %s %s: %w (last error: %v)", key, what, ctx.Err(), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// listenLoopback listens on any free loopback port.
func listenLoopback() (net.Listener, int, error) {
	listener, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return nil, 0, fmt.Errorf("failed to listen: %w", err)
	}
	return listener, listener.Addr().(*net.TCPAddr).Port, nil
}
