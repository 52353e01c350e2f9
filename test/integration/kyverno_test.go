// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	pkggate "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
)

const (
	onlyOurs = `{"resources.gardener.cloud/managed-by":"gardener"}`
	withTeam = `{"resources.gardener.cloud/managed-by":"gardener","team":"a"}`
)

// kyvernoInstalled makes what is to be seen of Kyverno: two configurations, of which one is flagged, and its ConfigMap.
func (s *theShoot) kyvernoInstalled(data map[string]string) {
	for name, resource := range map[string]string{"kyverno-resource": "nodes", "kyverno-policy": "policies"} {
		o := s.newValidating(name, hookOf{name: "kyverno", policy: "Fail", timeout: 10, resource: resource})
		o.Labels[pkggate.KyvernoLabel] = pkggate.KyvernoName
		s.create(o)
	}
	o := &corev1.ConfigMap{ObjectMeta: s.meta(pkggate.KyvernoName), Data: data}
	s.create(o)
}

// kyvernoWrites does what Kyverno does when it sees its ConfigMap: its configurations have its own label, those of the ConfigMap,
// and no other.
func (s *theShoot) kyvernoWrites() {
	var labels map[string]string
	if json.Unmarshal([]byte(s.webhookLabels()), &labels) != nil {
		labels = nil
	}
	for _, name := range []string{"kyverno-resource", "kyverno-policy"} {
		o := s.read(name)
		o.Labels = map[string]string{pkggate.KyvernoLabel: pkggate.KyvernoName, shootLabel: s.name}
		for k, v := range labels {
			o.Labels[k] = v
		}
		s.Expect(s.shoot().Update(s.ctx, o, client.FieldOwner("kyverno"))).To(Succeed())
	}
}

func (s *theShoot) kyvernoConfig() *corev1.ConfigMap {
	o := &corev1.ConfigMap{}
	s.Expect(s.shoot().Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: pkggate.KyvernoName}, o)).To(Succeed())
	return o
}

func (s *theShoot) webhookLabels() string {
	value, has := s.kyvernoConfig().Data[pkggate.KyvernoKey]
	if !has {
		return "absent"
	}
	return value
}

// gitOps writes the ConfigMap as a tool does that owns it.
func (s *theShoot) gitOps(value string) {
	o := s.kyvernoConfig()
	o.Data[pkggate.KyvernoKey] = value
	if value == "" {
		delete(o.Data, pkggate.KyvernoKey)
	}
	s.Expect(s.shoot().Update(s.ctx, o, client.FieldOwner("argocd"))).To(Succeed())
}

func TestKyvernoIsClaimedInItsConfigMap(t *testing.T) {
	for name, c := range map[string]struct{ before, during, after string }{
		"without labels":              {"absent", onlyOurs, "absent"},
		"with labels of the user":     {`{ "team": "a" }`, withTeam, `{"team":"a"}`},
		"with an empty set of labels": {`{}`, onlyOurs, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShootWithoutExtension(t)
			data := map[string]string{"webhooks": "[]"}
			if c.before != "absent" {
				data[pkggate.KyvernoKey] = c.before
			}
			s.kyvernoInstalled(data)
			g := s.gardener()
			s.Expect(g.hibernationPossible()).To(HavePrefix("False"))
			s.enabled()
			s.Eventually(s.webhookLabels).Should(MatchJSON(c.during))
			s.Eventually(s.gateSays).Should(Equal("Closed KyvernoWebhookLabels"))
			s.kyvernoWrites()
			s.Expect(g.hibernationPossible()).To(HavePrefix("True"))
			s.aPassLater()
			s.Eventually(s.gateSays).Should(Equal("Lifted"))
			s.Expect(s.guardStatus().Gate.Claimed).To(BeEquivalentTo(2))
			s.Expect(s.claimed()).To(ConsistOf("kyverno"))
			s.gate.forget()
			s.aPassLater()
			s.Expect(s.gate.seen(func(r request) bool { return r.name == pkggate.KyvernoName })).To(BeEmpty(), "all is well")

			s.flowBegins(false)
			s.disabled()
			s.Eventually(s.find).Should(BeNil())
			if c.after == "absent" {
				s.Expect(s.webhookLabels()).To(Equal("absent"))
			} else {
				s.Expect(s.webhookLabels()).To(MatchJSON(c.after))
			}
			s.Expect(s.kyvernoConfig().Data).To(HaveKeyWithValue("webhooks", "[]"))
		})
	}
}

func TestKyvernosKeyThatIsTakenOutTwiceIsNotSetAgain(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.kyvernoInstalled(map[string]string{"webhooks": "[]"})
	s.enabled()
	for range 2 {
		s.Eventually(s.webhookLabels).Should(MatchJSON(onlyOurs))
		s.Eventually(s.claimed).Should(ConsistOf("kyverno"))
		s.gitOps("")
		s.kyvernoWrites()
		s.aPassLater()
	}
	s.Eventually(s.gateSays).Should(Equal("Closed ClaimRemoved"))
	s.Expect(s.guardStatus().Gate.Blocking[0].Message).To(ContainSubstring("Helm"))
	s.aPassLater()
	s.Expect(s.webhookLabels()).To(Equal("absent"))
	s.gitOps(withTeam) // what the message says
	s.kyvernoWrites()
	s.aPassLater()
	s.Eventually(s.gateSays).Should(Equal("Open"))
	s.Expect(s.claimed()).To(BeEmpty())
}

func TestLabelFromTheUsersHelmValueIsHis(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.kyvernoInstalled(map[string]string{pkggate.KyvernoKey: withTeam})
	s.kyvernoWrites()
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Open"))
	s.Expect(s.claimed()).To(BeEmpty())
	s.flowBegins(false)
	s.disabled()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.webhookLabels()).To(Equal(withTeam))
}

func TestBadLabelsInKyvernosConfigMapAreNotTouched(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.kyvernoInstalled(map[string]string{pkggate.KyvernoKey: `{"team": `})
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Closed KyvernoWebhookLabels"))
	s.Expect(s.guardStatus().Gate.Blocking[0].Message).To(ContainSubstring("Mend it"))
	s.Expect(s.webhookLabels()).To(Equal(`{"team": `))
	s.gitOps(`{}`)
	s.aPassLater()
	s.Eventually(s.webhookLabels).Should(MatchJSON(onlyOurs))
}

func TestKyvernoThatDoesNotTakeTheLabelOverIsTold(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.kyvernoInstalled(map[string]string{})
	s.enabled()
	s.Eventually(s.webhookLabels).Should(MatchJSON(onlyOurs))
	message := func() string {
		if gate := s.guardStatus().Gate; gate != nil && len(gate.Blocking) > 0 {
			return gate.Blocking[0].Message
		}
		return ""
	}
	s.Eventually(message).WithTimeout(time.Minute).Should(ContainSubstring("1.12"), "after a few passes that follow one another soon")
	s.Expect(s.gateSays()).To(Equal("Closed KyvernoWebhookLabels"))
}

func TestKyvernoIsLeftToTheUserIfTheConfigSaysSo(t *testing.T) {
	s := newShootWithoutExtension(t, withConfig(quick+`,"kyverno":{"manageWebhookLabels":false}`))
	s.kyvernoInstalled(map[string]string{})
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Closed KyvernoWebhookLabels"))
	s.Expect(s.webhookLabels()).To(Equal("absent"))
	s.Expect(s.guardStatus().Gate.Blocking[0]).To(HaveField("Reason", v1alpha1.FindingKyvernoLabels))
}
