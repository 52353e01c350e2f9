// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// kyvernoController is one of Kyverno's four programs.
type kyvernoController struct {
	binary string
	// host and port are the flags of its server, empty if it has none.
	host, port string
	// runtimeMetrics says that it has a second metrics server.
	runtimeMetrics bool
}

// kyvernoControllers by the component label of their pods.
var kyvernoControllers = map[string]kyvernoController{
	"admission-controller":  {binary: "kyverno", host: "webhookServerHost", port: "webhookServerPort", runtimeMetrics: true},
	"background-controller": {binary: "background-controller", runtimeMetrics: true},
	"cleanup-controller":    {binary: "cleanup-controller", host: "cleanupServerHost", port: "cleanupServerPort"},
	"reports-controller":    {binary: "reports-controller"},
}

const (
	kyvernoServerPort  = 9443
	kyvernoMetricsPort = 8000
)

// kyvernoRunner runs Kyverno's pods: the flags and the environment of their spec, with loopback ports, under a token of
// their ServiceAccount.
type kyvernoRunner struct {
	bench *Bench
	all   bool // not only the admission controller
}

func (r *kyvernoRunner) Matches(pod *corev1.Pod) bool {
	component := pod.Labels[kyvernoComponent]
	_, ok := kyvernoControllers[component]
	return ok && pod.Namespace == KyvernoNamespace && (r.all || component == "admission-controller")
}

func (r *kyvernoRunner) Start(ctx context.Context, pod *corev1.Pod, node string) (Process, error) {
	controller := kyvernoControllers[pod.Labels[kyvernoComponent]]
	path, err := binary(controller.binary)
	if err != nil {
		return nil, err
	}
	config, err := r.bench.Machines.podKubeconfig(ctx, pod, node)
	if err != nil {
		return nil, err
	}
	serverPort, err := r.bench.ports.take()
	if err != nil {
		return nil, err
	}
	metricsPort, err := r.bench.ports.take()
	if err != nil {
		return nil, err
	}
	container := pod.Spec.Containers[0]
	args := append(slices.Clone(container.Args), // of a flag that is given twice, the last one counts
		"--kubeconfig="+config, "--metricsHost=127.0.0.1", fmt.Sprintf("--metricsPort=%d", metricsPort), "--autoMemLimitEnabled=false")
	if controller.host != "" {
		args = append(args, fmt.Sprintf("--%s=127.0.0.1", controller.host), fmt.Sprintf("--%s=%d", controller.port, serverPort))
	}
	if controller.runtimeMetrics {
		args = append(args, "--controllerRuntimeMetricsAddress=0")
	}
	started, err := startChild(command{
		name: controller.binary, path: path, args: args,
		env:     append(podEnvironment(pod, container), "TUF_ROOT="+filepath.Join(filepath.Dir(config), "tuf")),
		logPath: r.bench.Machines.logPath(pod),
	})
	if err != nil {
		r.bench.ports.give(serverPort, metricsPort)
		return nil, err
	}
	go func() {
		<-started.Done()
		r.bench.ports.give(serverPort, metricsPort)
	}()
	return childProcess{child: started, ports: map[int32]int{kyvernoServerPort: serverPort, kyvernoMetricsPort: metricsPort}}, nil
}

// podEnvironment is the environment of a container, as far as it is made of values and of the pod's name and namespace.
func podEnvironment(pod *corev1.Pod, container corev1.Container) []string {
	var environment []string
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			switch from.FieldRef.FieldPath {
			case "metadata.name":
				value = pod.Name
			case "metadata.namespace":
				value = pod.Namespace
			}
		}
		environment = append(environment, variable.Name+"="+value)
	}
	return environment
}

func (m *Machines) logPath(pod *corev1.Pod) string { return filepath.Join(m.dir, pod.Name+".log") }

// podKubeconfig writes a kubeconfig with a token of the pod's ServiceAccount, which is bound to the pod and requested
// as its kubelet does, and returns the file's path.
func (m *Machines) podKubeconfig(ctx context.Context, pod *corev1.Pod, node string) (string, error) {
	user := "system:node:" + node
	kubelet, err := kubernetes.NewForConfig(m.cp.ConfigFor(user, "system:nodes"))
	if err != nil {
		return "", fmt.Errorf("failed to make client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64((24 * time.Hour).Seconds())), // the processes do not renew it
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	var answer *authenticationv1.TokenRequest
	var last error
	// The node authorizer learns of the pod by a watch of its own: at first it may refuse.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 3*time.Second, true, func(ctx context.Context) (bool, error) {
		accounts := kubelet.CoreV1().ServiceAccounts(pod.Namespace)
		answer, last = accounts.CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		return !apierrors.IsForbidden(last), nil
	})
	name := pod.Namespace + "/" + pod.Spec.ServiceAccountName
	if err := m.observe(user, "create", "serviceaccounts/token", name, last); err != nil {
		return "", fmt.Errorf("failed to request token: %w", err)
	}
	if err != nil {
		return "", fmt.Errorf("failed to request token: %w", err)
	}
	content, err := kubeconfig(m.cp.Host(), m.cp.CABundle(), &clientcmdapi.AuthInfo{Token: answer.Status.Token})
	if err != nil {
		return "", err
	}
	path := filepath.Join(m.dir, pod.Name+".kubeconfig")
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return "", fmt.Errorf("failed to create directory: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("failed to write kubeconfig: %w", err)
	}
	return path, nil
}
