// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"k8s.io/client-go/util/keyutil"
)

// serviceNetwork holds the cluster IPs. Nothing ever dials them: the API server resolves Services itself.
const serviceNetwork = "100.104.0.0/16"

// frontProxyUser is whom extension API servers believe when it names another user.
const frontProxyUser = "front-proxy"

// pki are the keys of one control plane.
type pki struct {
	ca            *authority
	serving       pair
	serviceTokens []byte // private key, PEM
}

func newPKI(name string) (*pki, error) {
	ca, err := newAuthority(name)
	if err != nil {
		return nil, err
	}
	serving, err := ca.server("kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	tokens, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, fmt.Errorf("failed to generate key for tokens: %w", err)
	}
	return &pki{ca: ca, serving: serving, serviceTokens: tokens}, nil
}

// egress is the way of an API server to the cluster's network.
type egress struct {
	proxy  string // host:port
	ca     []byte
	client pair
}

// startEtcd is separate from StartAPIServer as etcd goes on running while the API server is stopped.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	client := "http://" + loopback(c.etcdPort)
	return c.start(ctx, component{slot: &c.etcd, name: "etcd", ready: client + "/health", args: []string{
		"--data-dir=" + c.file("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync=true", "--log-level=warn",
	}})
}

// StartAPIServer starts the API server, if it does not run, on the data and the port it had before, and returns when
// it is ready. If certificates were rotated, the new ones are used from here on.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	p := component{slot: &c.apiServer, name: "kube-apiserver", ready: c.Host() + "/readyz"}
	if c.child(p).running() {
		return nil
	}
	c.mu.Lock()
	if c.next != nil {
		c.pki, c.next, c.client = c.next, nil, nil
		c.rotations = append(c.rotations, time.Now())
	}
	c.mu.Unlock()
	if err := c.writeFiles(); err != nil {
		return err
	}
	p.args = []string{
		"--etcd-servers=http://" + loopback(c.etcdPort),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.apiPort),
		// Any address that is not loopback: those are refused in the endpoints of the Service kubernetes.
		"--advertise-address=192.0.2.1",
		"--tls-cert-file=" + c.file("serving.crt"), "--tls-private-key-file=" + c.file("serving.key"),
		"--client-ca-file=" + c.file("ca.crt"),
		"--service-cluster-ip-range=" + serviceNetwork,
		"--service-account-issuer=" + c.Host(),
		// Gardener's; gardener-resource-manager asks for tokens for the second one.
		"--api-audiences=kubernetes," + v1beta1constants.GardenerAudience,
		"--service-account-key-file=" + c.file("tokens.key"),
		"--service-account-signing-key-file=" + c.file("tokens.key"),
		"--allow-privileged=true", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--audit-policy-file=" + c.file("audit-policy.yaml"), "--audit-log-path=" + c.file("audit.log"),
		"--audit-log-mode=blocking", "--audit-log-maxsize=4096",
		"--shutdown-watch-termination-grace-period=1s",
	}
	if c.noStreamingLists {
		p.args = append(p.args, "--feature-gates=WatchList=false")
	}
	if c.egress == nil {
		// No kube-controller-manager makes ServiceAccounts here.
		p.args = append(p.args, "--disable-admission-plugins=ServiceAccount")
	} else {
		p.args = append(p.args, "--egress-selector-config-file="+c.file("egress.yaml"))
	}
	if c.aggregates {
		p.args = append(p.args, "--requestheader-client-ca-file="+c.file("ca.crt"), "--requestheader-allowed-names="+frontProxyUser,
			"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file="+c.file("front-proxy.crt"), "--proxy-client-key-file="+c.file("front-proxy.key"))
	} else {
		p.args = append(p.args, "--enable-aggregator-routing=true")
	}
	c.isReady(false)
	if err := c.start(ctx, p); err != nil {
		return err
	}
	c.isReady(true)
	return nil
}

// StopAPIServer ends the API server: SIGTERM, and SIGKILL if it does not end within 30 s. It takes 1 to 2 s, and up to
// 11 s if clients go on opening watches: stop kube-controller-manager first, as Gardener does. The data stays.
func (c *ControlPlane) StopAPIServer(context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.stop(component{slot: &c.apiServer, name: "kube-apiserver"})
	return nil
}

// StartControllerManager starts kube-controller-manager, if it does not run, and returns when it is healthy.
func (c *ControlPlane) StartControllerManager(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	args, err := c.componentArgs("kube-controller-manager", c.controllerManagerPort)
	if err != nil {
		return err
	}
	return c.start(ctx, component{slot: &c.controllerManager, name: "kube-controller-manager",
		ready: "https://" + loopback(c.controllerManagerPort) + "/healthz",
		args: append(args,
			"--root-ca-file="+c.file("ca.crt"),
			"--service-account-private-key-file="+c.file("tokens.key"),
			"--use-service-account-credentials=true",
			"--allocate-node-cidrs=false",
			// Gardener's default (pkg/apis/core/v1beta1/defaults_shoot.go in v1.149.3); Kubernetes' own is 50 s.
			"--node-monitor-grace-period=40s",
			"--kube-api-qps=200", "--kube-api-burst=400",
		)})
}

// StopControllerManager ends kube-controller-manager.
func (c *ControlPlane) StopControllerManager(context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.stop(component{slot: &c.controllerManager, name: "kube-controller-manager"})
	return nil
}

// StartScheduler starts kube-scheduler, if it does not run, and returns when it is healthy.
func (c *ControlPlane) StartScheduler(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	args, err := c.componentArgs("kube-scheduler", c.schedulerPort)
	if err != nil {
		return err
	}
	return c.start(ctx, component{slot: &c.scheduler, name: "kube-scheduler",
		ready: "https://" + loopback(c.schedulerPort) + "/healthz", args: args})
}

// StopScheduler ends kube-scheduler.
func (c *ControlPlane) StopScheduler(context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.stop(component{slot: &c.scheduler, name: "kube-scheduler"})
	return nil
}

// componentArgs writes the kubeconfig of a component and returns the flags all components share.
func (c *ControlPlane) componentArgs(name string, port int) ([]string, error) {
	content, err := c.Kubeconfig("system:" + name)
	if err != nil {
		return nil, err
	}
	path := c.file(name + ".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, fmt.Errorf("failed to write kubeconfig: %w", err)
	}
	return []string{
		"--kubeconfig=" + path, "--authentication-kubeconfig=" + path, "--authorization-kubeconfig=" + path,
		"--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.file("serving.crt"), "--tls-private-key-file=" + c.file("serving.key"),
	}, nil
}

// writeFiles writes what the API server reads. The caller holds turn, and the API server does not run: it would load
// a changed certificate on its own.
func (c *ControlPlane) writeFiles() error {
	keys := c.keys()
	files := map[string][]byte{
		"ca.crt":            keys.ca.pem,
		"serving.crt":       keys.serving.cert,
		"serving.key":       keys.serving.key,
		"tokens.key":        keys.serviceTokens,
		"audit-policy.yaml": []byte(auditPolicy),
	}
	if c.egress != nil {
		files["egress-ca.crt"], files["egress.crt"], files["egress.key"] = c.egress.ca, c.egress.client.cert, c.egress.client.key
		content, err := yaml.Marshal(c.egressConfiguration())
		if err != nil {
			return fmt.Errorf("failed to encode egress selector configuration: %w", err)
		}
		files["egress.yaml"] = content
	}
	if c.aggregates {
		proxy, err := keys.ca.client(frontProxyUser)
		if err != nil {
			return err
		}
		files["front-proxy.crt"], files["front-proxy.key"] = proxy.cert, proxy.key
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("failed to create directory: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
			return fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	return nil
}

// egressConfiguration is Gardener's: pods and Services through an HTTP CONNECT proxy with client certificates, the
// rest directly.
func (c *ControlPlane) egressConfiguration() *apiserverv1beta1.EgressSelectorConfiguration {
	direct := apiserverv1beta1.Connection{ProxyProtocol: apiserverv1beta1.ProtocolDirect}
	return &apiserverv1beta1.EgressSelectorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1beta1.SchemeGroupVersion.String(), Kind: "EgressSelectorConfiguration"},
		EgressSelections: []apiserverv1beta1.EgressSelection{
			{Name: "cluster", Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
				Transport: &apiserverv1beta1.Transport{TCP: &apiserverv1beta1.TCPTransport{
					URL: "https://" + c.egress.proxy,
					TLSConfig: &apiserverv1beta1.TLSConfig{
						CABundle: c.file("egress-ca.crt"), ClientCert: c.file("egress.crt"), ClientKey: c.file("egress.key"),
					},
				}},
			}},
			{Name: "controlplane", Connection: direct},
			{Name: "etcd", Connection: direct},
		},
	}
}
