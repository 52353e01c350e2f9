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
	"slices"
	"strconv"
	"strings"
	"sync"
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
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

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

	users                            map[*bench.ControlPlane]string
	binary, gardenKubeconfig, health string
	args                             map[string]string
	// stop ends the process that start has started.
	stop func()
}

func TestProviderConfigIsCheckedInTheGarden(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	c := &clusters{WithT: NewWithT(t), t: t, ctx: ctx, users: map[*bench.ControlPlane]string{}}
	var err error
	c.runtime, err = bench.NewAPIServers(ctx, bench.Options{})
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(c.runtime.Close()).To(Succeed()) })
	c.garden, err = bench.NewGarden(ctx, logr.Discard())
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(c.garden.Close()).To(Succeed()) })
	c.install()

	options := bench.GardenletOptions{Extension: true, ProviderConfig: config(`"mode":"Off"`)}
	c.Eventually(func() error { return c.garden.WouldAccept(ctx, c.runtime, options) }).WithTimeout(time.Minute).Should(MatchError(And(ContainSubstring("denied the request"),
		ContainSubstring(`spec.extensions[0].providerConfig.mode: Unsupported value: "Off": supported values: "Guard", "Report"`))), "once gardener-apiserver has seen the webhook")
	options.ProviderConfig = config(`"mode":"Guard"`)
	c.Expect(c.garden.CreateShoot(ctx, c.runtime, options)).To(Succeed())

	gardenlet := bench.NewGardenlet(c.runtime, bench.GardenletOptions{Garden: c.garden})
	t.Cleanup(gardenlet.Close)
	c.edits(gardenlet)
	c.survivesItsOwnAbsence(gardenlet)
	c.rightsAreThoseThatAreUsed()
}

func (c *clusters) edits(gardenlet *bench.Gardenlet) {
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].ProviderConfig = config(`"stabilisation":"5s","webhooks":[{"hook":"a","action":"Leave"},{"hook":"a","action":"Guard"}],"mode":"Off"`)
	})).To(MatchError(And(ContainSubstring("spec.extensions[0].providerConfig.stabilisation: Forbidden: there is no such field"),
		ContainSubstring("spec.extensions[0].providerConfig.mode: Unsupported value"))), "all faults are told at once")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].ProviderConfig = config(`"webhooks":[{"hook":"a","action":"Leave"},{"hook":"a","action":"Guard"}]`)
	})).To(MatchError(ContainSubstring("spec.extensions[0].providerConfig.webhooks[1]: Invalid value")), "so are contradictions")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].ProviderConfig, shoot.Spec.Extensions[0].Disabled = config(`"stabilisation":"5s"`), ptr.To(true)
	})).To(Succeed(), "the faults of a disabled extension hurt nobody")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].Disabled = ptr.To(false)
	})).NotTo(Succeed(), "until it is enabled")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = nil
	})).To(Succeed(), "a Shoot without the extension is not asked about")
}

// survivesItsOwnAbsence sets a faulty config while nobody checks it, and shows that it then stands in nobody's way.
func (c *clusters) survivesItsOwnAbsence(gardenlet *bench.Gardenlet) {
	c.stop()
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: bench.ExtensionType, ProviderConfig: config(`"mode":"Off"`)}}
		shoot.Finalizers = []string{gardencorev1beta1.GardenerName}
		shoot.Annotations = map[string]string{v1beta1constants.ConfirmationDeletion: "true"}
	})).To(Succeed(), "without anybody to answer Shoots can be edited")

	c.start()
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions[0].ProviderConfig = config(`"mode":"None"`)
	})).To(MatchError(ContainSubstring(`"None": supported values`)), "it answers again")
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Purpose = ptr.To(gardencorev1beta1.ShootPurposeDevelopment)
	})).To(Succeed(), "a fault that was there before blocks no other edit")
	c.Expect(c.garden.Client().Delete(c.ctx, gardenlet.Shoot())).To(Succeed())
	c.Expect(gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Finalizers = nil
	})).To(Succeed(), "nor the deletion")
	c.Expect(gardenlet.Shoot()).To(BeNil())
}

// rightsAreThoseThatAreUsed reads both audit logs: no request was refused, and each right was used but those for a rotation of
// the certificates, which is weeks ahead.
func (c *clusters) rightsAreThoseThatAreUsed() {
	rotation := []string{"runtime patch secrets ", "runtime delete secrets "}
	used := map[string]bool{}
	for name, plane := range map[string]*bench.ControlPlane{"garden": c.garden.ControlPlane, "runtime": c.runtime.Seed} {
		events, err := plane.Audit().Events(bench.Filter{User: c.users[plane]})
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(events).NotTo(BeEmpty(), "the audit log of the %s knows %s", name, c.users[plane])
		for _, event := range events {
			c.Expect(event.ResponseStatus.Code).NotTo(BeEquivalentTo(http.StatusForbidden), "%s: %s %s", name, event.Verb, event.RequestURI)
			if object := event.ObjectRef; object != nil {
				used[strings.Join([]string{name, event.Verb, object.Resource, object.APIGroup}, " ")] = true
			}
		}
	}
	for cluster, chart := range map[string]charttest.Chart{"garden": charttest.AdmissionApplication, "runtime": charttest.AdmissionRuntime} {
		for _, object := range chart.Render(c.t, nil) {
			for _, rule := range rulesOf(object) {
				for _, verb := range rule.Verbs {
					c.Expect(rule.Resources).To(HaveLen(1))
					for _, group := range rule.APIGroups {
						right := strings.Join([]string{cluster, verb, rule.Resources[0], group}, " ")
						if !used[right] && !slices.Contains(rotation, right) {
							c.t.Errorf("never used: %s", right)
						}
					}
				}
			}
		}
	}
}

func rulesOf(object client.Object) []rbacv1.PolicyRule {
	switch role := object.(type) {
	case *rbacv1.Role:
		return role.Rules
	case *rbacv1.ClusterRole:
		return role.Rules
	}
	return nil
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
	c.args, c.gardenKubeconfig, c.health = charttest.Args(c.t, objects), garden, "127.0.0.1:"+strconv.Itoa(healthPort)
	c.args["kubeconfig"] = own
	c.args["webhook-config-server-host"], c.args["webhook-config-server-port"] = "127.0.0.1", strconv.Itoa(webhookPort)
	c.args["webhook-config-url"] = "127.0.0.1:" + strconv.Itoa(webhookPort)
	c.args["webhook-config-cert-dir"] = c.t.TempDir()
	c.args["health-bind-address"], c.args["metrics-bind-address"] = c.health, "0"
	c.build()
	c.t.Cleanup(func() { c.stop() })
	c.start()
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	c.Eventually(func(g Gomega) {
		g.Expect(c.garden.Client().Get(c.ctx, client.ObjectKey{Name: configuration}, webhook)).To(Succeed())
		g.Expect(webhook.Webhooks).To(HaveLen(1))
		g.Expect(webhook.Webhooks[0].ClientConfig.CABundle).NotTo(BeEmpty())
		g.Expect(webhook.OwnerReferences).To(ConsistOf(HaveField("Name", application.Namespace)))
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(Succeed())
	c.Expect(*webhook.Webhooks[0].FailurePolicy).To(Equal(admissionregistrationv1.Ignore), "nothing depends on an answer")
}

func (c *clusters) create(to client.Client, object client.Object) {
	c.t.Helper()
	c.Expect(to.Create(c.ctx, object)).To(Succeed())
}

// kubeconfig is a file that lets the ServiceAccount in. Without the group of its namespace, whose reads the audit log leaves out.
func (c *clusters) kubeconfig(plane *bench.ControlPlane, subject rbacv1.Subject) string {
	c.users[plane] = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	content, err := plane.Kubeconfig(c.users[plane], "system:serviceaccounts")
	c.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	c.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

func (c *clusters) build() {
	c.binary = filepath.Join(c.t.TempDir(), command)
	build := exec.CommandContext(c.ctx, "go", "build", "-o", c.binary, "./cmd/"+command)
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	c.Expect(err).NotTo(HaveOccurred(), string(out))
}

// start runs the command until stop, and waits until it is ready.
func (c *clusters) start() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	cmd := exec.CommandContext(ctx, c.binary) // #nosec G204 -- built above
	for name, value := range c.args {
		cmd.Args = append(cmd.Args, "--"+name+"="+value)
	}
	cmd.Env = append(os.Environ(), "GARDEN_KUBECONFIG="+c.gardenKubeconfig)
	log, err := os.Create(filepath.Join(c.t.TempDir(), "log")) // #nosec G304 -- a temporary file
	c.Expect(err).NotTo(HaveOccurred())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	c.stop = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
		_ = log.Close()
		if content, err := os.ReadFile(log.Name()); c.t.Failed() && err == nil {
			c.t.Log(string(content[max(0, len(content)-5000):]))
		}
	})
	if err := cmd.Start(); err != nil {
		c.stop = func() {}
		c.t.Fatal(err)
	}
	c.Eventually(func() (int, error) {
		response, err := http.Get("http://" + c.health + "/readyz") // #nosec G107 -- loopback
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(Equal(http.StatusOK))
}
