// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AdminUser is the user of Config: the audit log tells the bench from the product by it.
const AdminUser = "bench-admin"

const (
	startTimeout = time.Minute
	// stopGrace is what a control plane component gets to end. kube-apiserver needs 1 to 2 s with
	// --shutdown-watch-termination-grace-period=1s, and up to 60 s without it.
	stopGrace = 30 * time.Second
)

// ControlPlane is an etcd and a kube-apiserver and, for the Shoot, a kube-controller-manager and a kube-scheduler.
// All methods may be called at any time from any goroutine; starts and stops of one control plane take turns.
type ControlPlane struct {
	name   string
	dir    string
	log    logr.Logger
	scheme *runtime.Scheme
	egress *egress // nil: the API server dials directly
	audit  *Audit
	// aggregates lets the API server hand requests over to extension API servers.
	aggregates bool
	// noStreamingLists is the option of Bench.
	noStreamingLists bool

	etcdPort, apiPort, controllerManagerPort, schedulerPort int

	turn sync.Mutex // held during starts and stops

	mu   sync.Mutex // guards what follows
	pki  *pki
	next *pki // applied at the next start of the API server
	// rotations are when that was done.
	rotations []time.Time
	// ready says since when the API server was ready, and when it was started again.
	ready []turn
	// client belongs to pki and is made when it is first asked for.
	client client.Client

	etcd, apiServer, controllerManager, scheduler *child
}

func newControlPlane(name, dir string, log logr.Logger, scheme *runtime.Scheme, p *ports, egress *egress) (*ControlPlane, error) {
	c := &ControlPlane{name: name, dir: dir, log: log.WithValues("controlPlane", name), scheme: scheme, egress: egress}
	c.audit = newAudit(dir)
	for _, port := range []*int{&c.etcdPort, &c.apiPort, &c.controllerManagerPort, &c.schedulerPort} {
		var err error
		if *port, err = p.take(); err != nil {
			return nil, err
		}
	}
	var err error
	if c.pki, err = newPKI(name); err != nil {
		return nil, err
	}
	return c, nil
}

// Config is for a cluster admin named AdminUser, without client-side rate limits. After RotateCertificates and the
// next start of the API server an older Config no longer works.
func (c *ControlPlane) Config() *rest.Config { return c.ConfigFor(AdminUser, "system:masters") }

// ConfigFor is for any user, by a client certificate of the control plane's authority.
func (c *ControlPlane) ConfigFor(user string, groups ...string) *rest.Config {
	keys := c.keys()
	signed, err := keys.ca.client(user, groups...)
	utilruntime.Must(err) // signing with our own key fails for no input
	return &rest.Config{
		Host:      "https://" + loopback(c.apiPort),
		QPS:       -1,
		UserAgent: "bench",
		// The API server's warnings are of no use to a bench.
		WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{
			CAData: keys.ca.pem, CertData: signed.cert, KeyData: signed.key,
		},
	}
}

// Kubeconfig is ConfigFor as the content of a kubeconfig file.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) ([]byte, error) {
	config := c.ConfigFor(user, groups...)
	return kubeconfig(config.Host, config.CAData, &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	})
}

func kubeconfig(host string, ca []byte, auth *clientcmdapi.AuthInfo) ([]byte, error) {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bench": {Server: host, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bench": auth},
		Contexts:       map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}},
		CurrentContext: "bench",
	})
	if err != nil {
		return nil, fmt.Errorf("failed to write kubeconfig: %w", err)
	}
	return content, nil
}

// CABundle is the certificate of the authority that signs serving and client certificates now.
func (c *ControlPlane) CABundle() []byte { return c.keys().ca.pem }

// Host is the URL of the API server. It never changes.
func (c *ControlPlane) Host() string { return "https://" + loopback(c.apiPort) }

// Client is an uncached client for Config. Ask for it again after a rotation of certificates.
func (c *ControlPlane) Client() client.Client {
	c.mu.Lock()
	known := c.client
	c.mu.Unlock()
	if known != nil {
		return known
	}
	// The REST mapper is lazy: a new client makes no request.
	made, err := client.New(c.Config(), client.Options{Scheme: c.scheme})
	utilruntime.Must(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = made
	return made
}

// Audit is the audit log of this API server.
func (c *ControlPlane) Audit() *Audit { return c.audit }

// Running says whether the API server's process runs.
func (c *ControlPlane) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.running()
}

// RotateCertificates makes a new authority, a new serving certificate and a new key for ServiceAccount tokens. They
// are applied by the next StartAPIServer; from then on older client certificates and tokens are refused and older
// kubeconfigs do not trust the API server. What ran before has to start again: kube-controller-manager, kube-scheduler,
// machines.
func (c *ControlPlane) RotateCertificates(context.Context) error {
	next, err := newPKI(c.name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = next
	return nil
}

// life are the times at which new certificates and keys were applied, and when the API server was ready.
func (c *ControlPlane) life() (rotations []time.Time, ready []turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rotations), slices.Clone(c.ready)
}

func (c *ControlPlane) isReady(ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = append(c.ready, turn{time.Now(), ready})
}

func (c *ControlPlane) keys() *pki {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pki
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.dir, name) }

// component is one process of a control plane.
type component struct {
	slot  **child // in ControlPlane, guarded by mu
	name  string
	args  []string
	ready string // URL that answers 200 to the admin when the component is ready
}

// start starts a component that does not run and returns when it is ready. Its process is ended if it does not become
// ready. The caller holds turn.
func (c *ControlPlane) start(ctx context.Context, p component) error {
	if c.child(p).running() {
		return nil
	}
	path, err := binary(p.name)
	if err != nil {
		return err
	}
	begin := time.Now()
	started, err := startChild(command{name: p.name, path: path, args: p.args, logPath: c.file(p.name + ".log")})
	if err != nil {
		return err
	}
	c.mu.Lock()
	*p.slot = started
	c.mu.Unlock()
	if err := c.waitReady(ctx, started, p.ready); err != nil {
		started.Kill()
		return err
	}
	c.log.Info("Started", "component", p.name, "pid", started.Pid(), "took", time.Since(begin).Round(time.Millisecond).String())
	return nil
}

func (c *ControlPlane) waitReady(ctx context.Context, p *child, url string) error {
	httpClient, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return fmt.Errorf("failed to make client: %w", err)
	}
	httpClient.Timeout = 5 * time.Second
	defer httpClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	last := "no answer"
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if !p.running() {
			return false, fmt.Errorf("%s ended: %s", p.name, p.state)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		_ = response.Body.Close()
		last = response.Status
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("failed to see %s ready (%s): %w; its last words: %s", p.name, last, err, p.lastWords())
	}
	return nil
}

// stop ends a component, which need not run. The caller holds turn.
func (c *ControlPlane) stop(p component) {
	running := c.child(p)
	if !running.running() {
		return
	}
	begin := time.Now()
	running.Stop(stopGrace)
	c.log.Info("Stopped", "component", p.name, "took", time.Since(begin).Round(time.Millisecond).String())
}

func (c *ControlPlane) child(p component) *child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *p.slot
}

// close ends all processes of the control plane at once.
func (c *ControlPlane) close() {
	c.turn.Lock()
	defer c.turn.Unlock()
	for _, p := range []**child{&c.scheduler, &c.controllerManager, &c.apiServer, &c.etcd} {
		if running := c.child(component{slot: p}); running != nil {
			running.Kill()
		}
	}
}
