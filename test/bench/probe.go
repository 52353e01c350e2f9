// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probeTimeout bounds one question to a process.
const probeTimeout = time.Second

// probeClient asks as a kubelet does: any certificate will do, each time on a new connection, redirects are no answer.
var probeClient = &http.Client{
	Timeout: probeTimeout,
	Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // #nosec G402 -- as a kubelet
		DisableKeepAlives: true,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// probe asks the readiness probe of each container at its loopback port and says whether all answer. A container
// without one, or with an exec or gRPC probe, is ready while its process runs.
func probe(ctx context.Context, pod *corev1.Pod, ports map[int32]int) bool {
	for _, container := range pod.Spec.Containers {
		p := container.ReadinessProbe
		switch {
		case p == nil:
		case p.HTTPGet != nil:
			if !probeHTTP(ctx, p.HTTPGet, ports[containerPort(container, p.HTTPGet.Port)]) {
				return false
			}
		case p.TCPSocket != nil:
			conn, err := net.DialTimeout("tcp", loopback(ports[containerPort(container, p.TCPSocket.Port)]), probeTimeout)
			if err != nil {
				return false
			}
			_ = conn.Close()
		}
	}
	return true
}

func probeHTTP(ctx context.Context, action *corev1.HTTPGetAction, port int) bool {
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	url := scheme + "://" + loopback(port) + "/" + strings.TrimPrefix(action.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	request.Header.Set("User-Agent", "kube-probe/1.36")
	for _, header := range action.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// containerPort is the number of a port that may be given by name, 0 if the container has none of this name.
func containerPort(container corev1.Container, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	return 0
}

// probeDelay is the longest initial delay of the pod's readiness probes.
func probeDelay(pod *corev1.Pod) time.Duration {
	var seconds int32
	for _, container := range pod.Spec.Containers {
		if container.ReadinessProbe != nil {
			seconds = max(seconds, container.ReadinessProbe.InitialDelaySeconds)
		}
	}
	return time.Duration(seconds) * time.Second
}
