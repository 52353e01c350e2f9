// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package shoot holds the connections to the Shoots' API servers: at most one per Shoot, none to a Shoot that sleeps; one that
// is awake is connected to only as long as it is looked at.
package shoot

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	kubernetesclient "github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

// Options of the connections.
type Options struct {
	// Timeout of a single request.
	Timeout time.Duration
	// QPS and Burst limit the requests to one Shoot.
	QPS   float32
	Burst int
	// UserAgent is what the Shoot's audit log shows. Whose kubeconfig was used, the user there says.
	UserAgent string
	// Log is for what the watches have to say.
	Log logr.Logger
}

var (
	scheme = runtime.NewScheme()
	mapper = meta.NewDefaultRESTMapper(nil)
)

// The API groups and their scopes are fixed and known: discovery would cost round trips at every wake-up.
func init() {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionregistrationv1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			mapper.Add(gv.WithKind(kind), scope)
			mapper.Add(gv.WithKind(kind+"List"), scope) // a cache of single namespaces asks for these
		}
	}
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Pod", "Service", "ConfigMap")
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Node", "Namespace")
	add(discoveryv1.SchemeGroupVersion, meta.RESTScopeNamespace, "EndpointSlice")
	add(coordinationv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Lease")
	add(eventsv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Event")
	add(admissionregistrationv1.SchemeGroupVersion, meta.RESTScopeRoot, "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
}

// Connections are the connections to all Shoots. They are safe for concurrent use.
type Connections struct {
	seed    client.Reader
	options Options
	notify  func(namespace string)

	mu    sync.Mutex
	known map[string]*Connection
}

// NewConnections returns an empty set. seed must read Secrets uncached. notify is called for every change in a watched
// Shoot that may matter; it must not block.
func NewConnections(seed client.Reader, notify func(namespace string), options Options) *Connections {
	return &Connections{seed: seed, options: options, notify: notify, known: map[string]*Connection{}}
}

// Connection to one Shoot's API server.
type Connection struct {
	// Client reads and writes without a cache.
	Client client.Client

	namespace string
	// source is the version of the Secret that the connection was made from, and which Secret it is.
	source string
	// renewal is when the token is due to be renewed; zero when the Secret does not say.
	renewal time.Time
	config  *rest.Config
	http    *http.Client
	dialer  *connrotation.Dialer
	closed  atomic.Bool
	skew    atomic.Int64
	log     logr.Logger
	notify  func(string)

	mu      sync.Mutex
	watched *watched
	// interest are the namespaces of backends: pods, services and endpoints elsewhere change nothing.
	interest sync.Map
	groups   sync.Map // API group -> whether it is served
}

// errUnusable says that a Secret holds nothing to connect with: no token was issued yet, or somebody changed it.
var errUnusable = errors.New("there is no kubeconfig with a token")

// Get returns the connection to the Shoot with the technical namespace by the extension's own kubeconfig, made anew when its
// Secret has changed. Making it costs one request to the seed and none to the Shoot.
func (c *Connections) Get(ctx context.Context, namespace string) (*Connection, error) {
	secret := &corev1.Secret{}
	if err := c.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: access.SecretName}, secret); err != nil {
		return nil, fmt.Errorf("failed to get the extension's own kubeconfig of the Shoot: %w", err)
	}
	return c.get(namespace, secret)
}

// GetGardeners is Get by Gardener's own kubeconfig. The connection is to be closed after use; the next Get closes it, too.
func (c *Connections) GetGardeners(ctx context.Context, namespace string) (*Connection, error) {
	secret, err := access.GardenersSecret(ctx, c.seed, namespace)
	if err != nil {
		return nil, err
	}
	return c.get(namespace, secret)
}

func (c *Connections) get(namespace string, secret *corev1.Secret) (*Connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.known[namespace]; conn != nil {
		if conn.source == sourceOf(secret) {
			return conn, nil
		}
		conn.close()
		delete(c.known, namespace)
	}
	conn, err := c.connect(namespace, secret)
	if err != nil {
		return nil, err
	}
	c.known[namespace] = conn
	return conn, nil
}

func sourceOf(secret *corev1.Secret) string {
	return secret.Name + "/" + string(secret.UID) + "/" + secret.ResourceVersion
}

func (c *Connections) connect(namespace string, secret *corev1.Secret) (*Connection, error) {
	config, err := kubernetesclient.RESTConfigFromKubeconfig(secret.Data[kubernetesclient.KubeConfig],
		kubernetesclient.AuthTokenFile, kubernetesclient.AuthClientKey, kubernetesclient.AuthClientCertificate)
	if err != nil {
		return nil, fmt.Errorf("%w in Secret %s/%s: %w", errUnusable, secret.Namespace, secret.Name, err)
	}
	if secret.Name == access.SecretName && config.BearerToken == "" { // the requests would be anonymous
		return nil, fmt.Errorf("%w in Secret %s/%s yet", errUnusable, secret.Namespace, secret.Name)
	}
	conn := &Connection{
		namespace: namespace, source: sourceOf(secret), config: config,
		dialer: connrotation.NewDialer((&net.Dialer{Timeout: c.options.Timeout}).DialContext),
		log:    c.options.Log.WithValues("namespace", namespace), notify: c.notify,
	}
	// What is no time is taken for none: the API server has the last word on the token.
	conn.renewal, _ = time.Parse(time.RFC3339, secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp])
	config.Timeout, config.QPS, config.Burst = c.options.Timeout, c.options.QPS, c.options.Burst
	config.UserAgent = c.options.UserAgent
	config.Dial = conn.dial
	config.Wrap(conn.measureSkew)
	if conn.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("failed to make an HTTP client for the Shoot: %w", err)
	}
	if conn.Client, err = client.New(config, client.Options{HTTPClient: conn.http, Scheme: scheme, Mapper: mapper}); err != nil {
		return nil, fmt.Errorf("failed to make a client for the Shoot: %w", err)
	}
	return conn, nil
}

// Renewed says whether the token is not due to be renewed at the time: gardener-resource-manager, which does not run while the
// Shoot sleeps, has renewed it since, or it did not have to.
func (c *Connection) Renewed(now time.Time) bool {
	return now.Before(c.renewal)
}

// Close ends the connection to a Shoot, with all watches. Open ones would delay the end of its API server.
func (c *Connections) Close(namespace string) {
	c.mu.Lock()
	conn := c.known[namespace]
	delete(c.known, namespace)
	c.mu.Unlock()
	if conn != nil {
		conn.close()
	}
}

// Failed drops the connection when err says that its credentials or certificates are no longer good: they may have been
// rotated while the Shoot slept.
func (c *Connections) Failed(namespace string, err error) {
	if apierrors.IsUnauthorized(err) || untrusted(err) {
		c.Close(namespace)
	}
}

// NoAccess says whether err means that the API server may be there, but not for this kubeconfig: there is none, or no token in it,
// the API server does not know it, grants it too little, or is another one.
func NoAccess(err error) bool {
	return apierrors.IsNotFound(err) || errors.Is(err, errUnusable) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
		untrusted(err)
}

func untrusted(err error) bool {
	var unknownCA x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &unknownCA) || errors.As(err, &hostname) || errors.As(err, &invalid)
}

// errClosed is what a request gets that comes after the end of its connection.
var errClosed = errors.New("the connection to the Shoot is closed")

// dial does not outlive the connection: a request that gave up leaves its dial behind, which may succeed later.
func (c *Connection) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialed, err := c.dialer.DialContext(ctx, network, address)
	if err == nil && c.closed.Load() {
		return nil, errors.Join(errClosed, dialed.Close())
	}
	return dialed, err
}

func (c *Connection) close() {
	c.closed.Store(true)
	c.StopWatching()
	c.http.CloseIdleConnections()
	c.dialer.CloseAll()
}

// Now is the time by the Shoot's API server's clock, to about a second.
func (c *Connection) Now(local time.Time) time.Time {
	return local.Add(time.Duration(c.skew.Load()))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// measureSkew reads the API server's clock off the Date header, which has a resolution of one second: a smaller
// difference is none.
func (c *Connection) measureSkew(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil {
			return response, err
		}
		if date, parseErr := http.ParseTime(response.Header.Get("Date")); parseErr == nil {
			skew := time.Until(date.Add(500 * time.Millisecond))
			if skew.Abs() < 2*time.Second {
				skew = 0
			}
			c.skew.Store(int64(skew))
		}
		return response, nil
	})
}
