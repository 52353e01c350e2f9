// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const webhookPort = 8443

// Answer judges one admission request; its uid is filled in.
type Answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Allow admits everything.
func Allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// Deny refuses everything with message.
func Deny(message string) Answer {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusForbidden, Message: message}}
	}
}

// WebhookOptions of an in-house webhook.
type WebhookOptions struct {
	// Name of Deployment, Service and configuration. Default: `hook`.
	Name string
	// Namespace of its pods; it is created. Default: Name.
	Namespace string
	// Replicas default to 1.
	Replicas int32
	// Mutating makes the configuration a MutatingWebhookConfiguration.
	Mutating bool
	// What the configuration's only entry says. Rules are required; the rest may be left to the API server's defaults.
	Rules             []admissionregistrationv1.RuleWithOperations
	FailurePolicy     *admissionregistrationv1.FailurePolicyType
	TimeoutSeconds    *int32
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	// Labels of the configuration.
	Labels map[string]string
	// Answer defaults to Allow.
	Answer Answer
}

// Webhook is a webhook with a backend in the Shoot: a Deployment whose pods are TLS servers in this process.
type Webhook struct {
	// Name of Deployment, Service and configuration.
	Name string
	// Namespace of the backend.
	Namespace string
	// HookName is the name of the configuration's entry.
	HookName string
	// CABundle is in the configuration.
	CABundle []byte

	bench   *Bench
	serving tls.Certificate

	mu     sync.Mutex
	answer Answer
	delay  time.Duration
	calls  []admissionv1.AdmissionRequest
}

// InstallWebhook creates the backend, waits until it serves, and then creates the configuration.
func (b *Bench) InstallWebhook(ctx context.Context, o WebhookOptions) (*Webhook, error) {
	w, err := b.newWebhook(&o)
	if err != nil {
		return nil, err
	}
	b.Machines.Register(w)
	if err := createAll(ctx, b.Shoot.Client(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}, w.service(), w.deployment(o.Replicas),
	); err != nil {
		return nil, err
	}
	if err := w.WaitServing(ctx); err != nil {
		return nil, err
	}
	return w, createAll(ctx, b.Shoot.Client(), w.configuration(o))
}

func (b *Bench) newWebhook(o *WebhookOptions) (*Webhook, error) {
	if o.Name == "" {
		o.Name = "hook"
	}
	if o.Namespace == "" {
		o.Namespace = o.Name
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Answer == nil {
		o.Answer = Allow
	}
	ca, err := newAuthority(o.Name)
	if err != nil {
		return nil, err
	}
	signed, err := ca.server(fmt.Sprintf("%s.%s.svc", o.Name, o.Namespace))
	if err != nil {
		return nil, err
	}
	serving, err := signed.tls()
	if err != nil {
		return nil, err
	}
	return &Webhook{
		Name: o.Name, Namespace: o.Namespace, HookName: o.Name + ".bench.example.com", CABundle: ca.pem,
		bench: b, serving: serving, answer: o.Answer,
	}, nil
}

// createAll creates objects one after the other; one that exists is left as it is.
func createAll(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("failed to create %T %s: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

func (w *Webhook) labels() map[string]string {
	return map[string]string{"bench.example.com/webhook": w.Name}
}

func (w *Webhook) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace},
		Spec: corev1.ServiceSpec{
			Selector: w.labels(),
			Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https")}},
		},
	}
}

func (w *Webhook) deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: w.labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: w.labels()},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "webhook", Image: "webhook",
					Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: webhookPort}},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
						Path: "/healthz", Port: intstr.FromString("https"), Scheme: corev1.URISchemeHTTPS,
					}}},
				}}},
			},
		},
	}
}

func (w *Webhook) configuration(o WebhookOptions) client.Object {
	meta := metav1.ObjectMeta{Name: w.Name, Labels: o.Labels}
	clientConfig := admissionregistrationv1.WebhookClientConfig{
		CABundle: w.CABundle,
		Service:  &admissionregistrationv1.ServiceReference{Namespace: w.Namespace, Name: w.Name, Path: ptr.To("/admit")},
	}
	versions := []string{"v1"}
	if o.Mutating {
		return &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: w.HookName, ClientConfig: clientConfig, Rules: o.Rules, FailurePolicy: o.FailurePolicy,
				TimeoutSeconds: o.TimeoutSeconds, NamespaceSelector: o.NamespaceSelector, ObjectSelector: o.ObjectSelector,
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: versions,
			}},
		}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: meta,
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: w.HookName, ClientConfig: clientConfig, Rules: o.Rules, FailurePolicy: o.FailurePolicy,
			TimeoutSeconds: o.TimeoutSeconds, NamespaceSelector: o.NamespaceSelector, ObjectSelector: o.ObjectSelector,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: versions,
		}},
	}
}

// WaitServing waits until a pod of the backend is a ready endpoint.
func (w *Webhook) WaitServing(ctx context.Context) error {
	return waitEndpoint(ctx, w.bench.Shoot.Client(), w.Namespace, w.Name)
}

// waitEndpoint waits until a Service has a ready endpoint.
func waitEndpoint(ctx context.Context, c client.Client, namespace, service string) error {
	for {
		slices := &discoveryv1.EndpointSliceList{}
		err := c.List(ctx, slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, false) {
					return nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to see an endpoint of service %s/%s: %w (last error: %v)", namespace, service, ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Scale sets the replicas of the backend and returns at once.
func (w *Webhook) Scale(ctx context.Context, replicas int32) error {
	return scale(ctx, w.bench.Shoot.Client(), w.Namespace, w.Name, replicas)
}

func scale(ctx context.Context, c client.Client, namespace, name string, replicas int32) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)))
	if err := c.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("failed to scale deployment %s/%s: %w", namespace, name, err)
	}
	return nil
}

// SetAnswer changes how all pods judge from now on.
func (w *Webhook) SetAnswer(answer Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// SetDelay has all pods wait before they answer.
func (w *Webhook) SetDelay(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = delay
}

// Calls are the admission requests that reached the backend so far.
func (w *Webhook) Calls() []admissionv1.AdmissionRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]admissionv1.AdmissionRequest(nil), w.calls...)
}

// Ended is when the last process of the backend ended; zero if none has.
func (w *Webhook) Ended() time.Time { return w.bench.Machines.Ended(w.Matches) }

// Matches is for Runner.
func (w *Webhook) Matches(pod *corev1.Pod) bool {
	return pod.Namespace == w.Namespace && pod.Labels["bench.example.com/webhook"] == w.Name
}

// Start is for Runner.
func (w *Webhook) Start(context.Context, *corev1.Pod, string) (Process, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{w.serving}}
	return serveInProcess(webhookPort, config, http.HandlerFunc(w.serve))
}

func (w *Webhook) serve(response http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/admit" {
		return // the readiness probe
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(response, "not an admission review", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	answer, delay := w.answer, w.delay
	w.calls = append(w.calls, *review.Request)
	w.mu.Unlock()
	select {
	case <-request.Context().Done():
		return
	case <-time.After(delay):
	}
	review.Response = answer(review.Request)
	review.Response.UID, review.Request = review.Request.UID, nil
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(review) // the caller has gone
}
