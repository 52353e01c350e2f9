// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func TestLostRecordIsTakenFromTheAnnotation(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.loseRecord()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.leftovers).Should(BeEmpty())
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
}

// forgetOriginals removes the annotation from a configuration while the controller is away.
func (s *theShoot) forgetOriginals(name string) {
	s.annotate(name, func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
		delete(o.Annotations, v1alpha1.OriginalsAnnotation)
	})
}

func (s *theShoot) annotate(name string, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
	s.controller.end()
	s.edit(name, change)
	s.startController()
}

func TestLostOriginalIsReportedAndNeverGuessed(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.forgetOriginals("policies")
	s.apiServerStops()
	s.flowEnds()
	s.loseRecord()
	s.wakesUp()
	s.nodesJoin()
	known := with(with(own, "policies/strict", "Ignore 3s"), "policies/slow", "Ignore 3s")
	s.Eventually(s.standing).Should(Equal(known), "the rest is given back")
	s.Eventually(s.condition).Should(HavePrefix("False OriginalUnknown: Set failurePolicy and timeoutSeconds by hand"))
	s.Expect(s.condition()).To(And(ContainSubstring("strict.hooks"), ContainSubstring("slow.hooks")))
	s.Expect(s.codes()).To(ConsistOf(gardencorev1beta1.ErrorProblematicWebhook))
	s.nudge()
	s.restartController()
	s.Consistently(s.condition).Should(HavePrefix("False OriginalUnknown"), "as long as nobody has mended it")
	s.gate.shut()
	s.nudge()
	s.Consistently(s.condition).Should(HavePrefix("False OriginalUnknown"), "nor while nobody can look")
	s.gate.open()
	s.Expect(s.standing()).To(Equal(known))

	s.set("policies", 0, "Fail", 10)
	s.set("policies", 1, "Ignore", 20)
	s.nudge() // instead of five minutes
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestLostOriginalMayComeBackFromTheOwner(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.forgetOriginals("policies")
	s.apiServerStops()
	s.flowEnds()
	s.loseRecord()
	s.wakesUp()
	s.nodesJoin()
	s.set("policies", 0, "Fail", 10)
	s.set("policies", 1, "Ignore", 20)
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

// codes of the condition.
func (s *theShoot) codes() []gardencorev1beta1.ErrorCode {
	return s.lookup().Status.Conditions[0].Codes
}

func TestTamperedRecordIsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tamper    func(strict map[string]any)
		annotated bool
		strict    string
		condition string
	}{
		"a policy that does not exist is taken from the annotation": {
			tamper:    func(strict map[string]any) { strict["failurePolicy"] = "Foo" },
			annotated: true, strict: "Fail 10s", condition: "True WebhooksEnforced",
		},
		"a timeout out of range is taken from the annotation": {
			tamper:    func(strict map[string]any) { strict["timeoutSeconds"] = 99 },
			annotated: true, strict: "Fail 10s", condition: "True WebhooksEnforced",
		},
		"a policy that does not exist and no annotation": {
			tamper: func(strict map[string]any) { strict["failurePolicy"] = "Foo" },
			strict: "Ignore 3s", condition: "False OriginalUnknown",
		},
		"a timeout out of range and no annotation": {
			tamper: func(strict map[string]any) { strict["timeoutSeconds"] = 99 },
			strict: "Ignore 3s", condition: "False OriginalUnknown",
		},
		"a timeout of another type and no annotation": {
			tamper: func(strict map[string]any) { strict["timeoutSeconds"] = "ten" },
			strict: "Ignore 3s", condition: "False OriginalUnknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			s.flowBegins(true)
			s.call()
			s.nodesGo()
			if !c.annotated {
				s.forgetOriginals("policies")
			}
			s.apiServerStops()
			s.flowEnds()
			s.tamper(func(state map[string]any) {
				for key, record := range state["hooks"].(map[string]any) {
					if strings.Contains(key, "strict") {
						c.tamper(record.(map[string]any)["original"].(map[string]any))
					}
				}
			})
			s.wakesUp()
			s.nodesJoin()
			s.Eventually(s.standing).Should(Equal(with(own, "policies/strict", c.strict)))
			s.Eventually(s.condition).Should(HavePrefix(c.condition))
		})
	}
}

func TestGarbageForARecord(t *testing.T) {
	t.Parallel()
	for name, garbage := range map[string]map[string]any{
		"of another kind":      {"apiVersion": "v1", "kind": "List"},
		"with hooks of a kind": {"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "GuardState", "revision": 1, "hooks": "garbage"},
		"from the future":      {"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "GuardState", "revision": 99, "later": true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			s.hibernates()
			s.tamper(func(state map[string]any) {
				clear(state)
				for key, value := range garbage {
					state[key] = value
				}
			})
			s.wakesUp()
			s.Expect(s.standing()).To(Equal(open))
			s.nodesJoin()
			s.Eventually(s.standing).Should(Equal(own), "from the annotations")
			s.Eventually(s.condition).Should(HavePrefix("Progressing RecordNotWritten"))
			raw := string(s.lookup().Status.State.Raw)
			for key := range garbage {
				s.Expect(raw).To(ContainSubstring(key), "the record is left as it is")
			}
		})
	}
}

func TestTamperedAnnotationIsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"no JSON":        `{{{`,
		"wrong policy":   `{"hooks":{"strict.hooks.example.com":{"failurePolicy":"Foo","timeoutSeconds":10},"slow.hooks.example.com":{"failurePolicy":"Foo","timeoutSeconds":10}}}`,
		"timeout of 99":  `{"hooks":{"strict.hooks.example.com":{"failurePolicy":"Fail","timeoutSeconds":99},"slow.hooks.example.com":{"failurePolicy":"Fail","timeoutSeconds":99}}}`,
		"wrong types":    `{"hooks":{"strict.hooks.example.com":[],"slow.hooks.example.com":7}}`,
		"of other hooks": `{"hooks":{"other.hooks.example.com":{"failurePolicy":"Fail","timeoutSeconds":10}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			s.flowBegins(true)
			s.call()
			s.nodesGo()
			s.annotate("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
				o.Annotations[v1alpha1.OriginalsAnnotation] = value
			})
			s.apiServerStops()
			s.flowEnds()
			s.loseRecord()
			s.wakesUp()
			s.nodesJoin()
			s.Eventually(s.standing).Should(Equal(with(with(own, "policies/strict", "Ignore 3s"), "policies/slow", "Ignore 3s")))
			s.Eventually(s.condition).Should(HavePrefix("False OriginalUnknown"))
		})
	}
}
