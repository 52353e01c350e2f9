// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission_test runs the admission component between two API servers: it keeps its certificates in the runtime cluster
// and registers its webhook in a garden with the real gardener-apiserver, with exactly the rights of its charts.
package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

const (
	command       = "gardener-extension-shoot-hibernation-guard-admission"
	configuration = "gardener-extension-admission-shoot-hibernation-guard"
)

// clusters are the two clusters that the admission component is between.
type clusters struct {
	*WithT
	t       *testing.T
	ctx     context.Context
	runtime *bench.Bench // only its seed
	garden  *bench.Garden
}

func TestProviderConfigIsCheckedInTheGarden(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	c := &clusters{WithT: NewWithT(t), t: t, ctx: ctx}
	var err error
	c.runtime, err = bench.NewAPIServers(ctx, bench.Options{})
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(c.runtime.Close()).To(Succeed()) })
	c.garden, err = bench.NewGarden(ctx, logr.Discard())
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(c.garden.Close()).To(Succeed()) })
	c.install()

	options := bench.GardenletOptions{Extension: true, ProviderConfig: config(`"mode":"Off"`)}
	c.Expect(c.garden.CreateShoot(ctx, c.runtime, options)).To(MatchError(And(ContainSubstring("denied the request"),
		ContainSubstring(`spec.extensions[0].providerConfig.mode: Unsupported value: "Off": supported values: "Guard", "Report"`))))
	c.Expect(c.garden.Client().Delete(ctx, &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: bench.ExtensionType}})).To(Succeed())
	options.ProviderConfig = config(`"mode":"Guard"`)
	c.Expect(c.garden.CreateShoot(ctx, c.runtime, options)).To(Succeed())

	gardenlet := bench.NewGardenlet(c.runtime, bench.GardenletOptions{Garden: c.garden})
	t.Cleanup(gardenlet.Close)
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].ProviderConfig = config(`"stabilisation":"5s"`)
	})).To(MatchError(ContainSubstring(`spec.extensions[0].providerConfig.stabilisation: Forbidden: there is no such field`)))
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].ProviderConfig, shoot.Spec.Extensions[0].Disabled = config(`"stabilisation":"5s"`), ptr.To(true)
	})).To(Succeed(), "the faults of a disabled extension hurt nobody")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].Disabled = ptr.To(false)
	})).NotTo(Succeed(), "until it is enabled")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = nil
	})).To(Succeed(), "a Shoot without the extension is not asked about")

	for name, plane := range map[string]*bench.ControlPlane{"garden": c.garden.ControlPlane, "runtime": c.runtime.Seed} {
		refused, err := plane.Audit().Events(bench.Filter{UserAgent: command})
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(refused).NotTo(BeEmpty(), "the audit log knows it")
		for _, event := range refused {
			c.Expect(event.ResponseStatus.Code).NotTo(BeEquivalentTo(http.StatusForbidden), "%s: %s %s", name, event.Verb, event.RequestURI)
		}
	}
}

// config is a providerConfig with these fields.
func config(fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"apiVersion":%q,"kind":"GuardConfig",%s}`, v1alpha1.SchemeGroupVersion, fields))}
}

// install grants the rights of both charts and starts the component as the runtime chart does, but on loopback.
func (c *clusters) install() {
	application, inRuntime := charttest.AdmissionApplication, charttest.AdmissionRuntime
	c.create(c.garden.Client(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: application.Namespace}})
	c.create(c.runtime.Seed.Client(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inRuntime.Namespace}})
	for _, object := range application.Render(c.t, nil) {
		c.create(c.garden.Client(), object)
	}
	objects := inRuntime.Render(c.t, nil)
	for _, object := range objects {
		switch object.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding, *corev1.ServiceAccount:
			c.create(c.runtime.Seed.Client(), object)
		}
	}
	subject := charttest.One[*rbacv1.ClusterRoleBinding](c.t, application.Render(c.t, nil)).Subjects[0]
	garden := c.kubeconfig(c.garden.ControlPlane, subject)
	own := c.kubeconfig(c.runtime.Seed, charttest.One[*rbacv1.RoleBinding](c.t, objects).Subjects[0])

	webhookPort, err := c.garden.Port()
	c.Expect(err).NotTo(HaveOccurred())
	healthPort, err := c.garden.Port()
	c.Expect(err).NotTo(HaveOccurred())
	args := charttest.Args(c.t, objects)
	args["kubeconfig"] = own
	args["webhook-config-server-host"], args["webhook-config-server-port"] = "127.0.0.1", strconv.Itoa(webhookPort)
	args["webhook-config-url"] = "127.0.0.1:" + strconv.Itoa(webhookPort)
	args["webhook-config-cert-dir"] = c.t.TempDir()
	args["health-bind-address"], args["metrics-bind-address"] = "127.0.0.1:"+strconv.Itoa(healthPort), "0"
	c.run(args, garden)

	c.Eventually(func() (int, error) {
		response, err := http.Get("http://127.0.0.1:" + strconv.Itoa(healthPort) + "/readyz") // #nosec G107 -- loopback
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(Equal(http.StatusOK))
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	c.Eventually(func(g Gomega) {
		g.Expect(c.garden.Client().Get(c.ctx, client.ObjectKey{Name: configuration}, webhook)).To(Succeed())
		g.Expect(webhook.Webhooks).To(HaveLen(1))
		g.Expect(webhook.Webhooks[0].ClientConfig.CABundle).NotTo(BeEmpty())
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(Succeed())
	c.Expect(webhook.OwnerReferences).To(ConsistOf(HaveField("Name", application.Namespace)))
	c.Expect(*webhook.Webhooks[0].FailurePolicy).To(Equal(admissionregistrationv1.Fail))
}

func (c *clusters) create(to client.Client, object client.Object) {
	c.t.Helper()
	c.Expect(to.Create(c.ctx, object)).To(Succeed())
}

// kubeconfig is a file that lets the ServiceAccount in.
func (c *clusters) kubeconfig(plane *bench.ControlPlane, subject rbacv1.Subject) string {
	content, err := plane.Kubeconfig("system:serviceaccount:"+subject.Namespace+":"+subject.Name, "system:serviceaccounts", "system:serviceaccounts:"+subject.Namespace)
	c.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	c.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// run runs the command until the test ends.
func (c *clusters) run(args map[string]string, gardenKubeconfig string) {
	path := filepath.Join(c.t.TempDir(), command)
	build := exec.CommandContext(c.ctx, "go", "build", "-o", path, "./cmd/"+command)
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	c.Expect(err).NotTo(HaveOccurred(), string(out))

	ctx, stop := context.WithCancel(context.WithoutCancel(c.ctx))
	cmd := exec.CommandContext(ctx, path) // #nosec G204 -- built above
	for name, value := range args {
		cmd.Args = append(cmd.Args, "--"+name+"="+value)
	}
	cmd.Env = append(os.Environ(), "GARDEN_KUBECONFIG="+gardenKubeconfig)
	log, err := os.Create(filepath.Join(c.t.TempDir(), "log")) // #nosec G304 -- a temporary file
	c.Expect(err).NotTo(HaveOccurred())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	c.Expect(cmd.Start()).To(Succeed())
	c.t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was told to end
		_ = log.Close()
		if content, err := os.ReadFile(log.Name()); c.t.Failed() && err == nil {
			c.t.Log(string(content[max(0, len(content)-5000):]))
		}
	})
}
