// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// certificate expires so long after now.
func certificate(t *testing.T, valid time.Duration) []byte {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestWarningsOfCertificates(t *testing.T) {
	const day = 24 * time.Hour
	// now is a Monday, 12:00 UTC
	nightly := []gardencorev1beta1.HibernationSchedule{{Start: new("0 20 * * *"), End: new("0 8 * * *")}}
	weekend := []gardencorev1beta1.HibernationSchedule{{Start: new("0 22 * * 5")}, {End: new("0 6 * * 1"), Location: new("Europe/Berlin")}}
	short, long := certificate(t, 19*time.Hour), certificate(t, 25*day)
	for _, tc := range []struct {
		name      string
		bundle    []byte
		schedules []gardencorev1beta1.HibernationSchedule
		warned    bool
	}{
		{"expires before the next wake-up", short, nightly, true},
		{"expires after the next wake-up", long, nightly, false},
		{"expires over the weekend", certificate(t, 6*day), weekend, true},
		{"expires within 30 days, and nothing is planned", long, nil, true},
		{"expires later, and nothing is planned", certificate(t, 31*day), nil, false},
		{"only a sleep is planned", certificate(t, 31*day), weekend[:1], true},
		{"only a wake-up is planned", certificate(t, 31*day), weekend[1:], false},
		{"a schedule that is none", long, []gardencorev1beta1.HibernationSchedule{{Start: new("never")}}, true},
		{"another certificate of the bundle lasts", append(append([]byte{}, short...), long...), nightly, false},
		{"no certificate", []byte("garbage"), nightly, false},
		{"no bundle", nil, nightly, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := configuration("a", harmless(), harmless())
			s.Configuration.Hooks[0].CABundle, s.Configuration.Hooks[1].CABundle = tc.bundle, tc.bundle
			want := []string{}
			if tc.warned {
				want = []string{"CAExpires"} // once
			}
			NewWithT(t).Expect(reasons(gate.Warnings(gate.Ahead{Now: now, Subjects: []gate.Subject{s}, Schedules: tc.schedules}))).To(Equal(want))
		})
	}
}

func TestWarningsOfHooks(t *testing.T) {
	gardeners := func(h hook.Hook) gate.Subject {
		s := configuration("a", h)
		s.Hooks[0].Scope = scope.Verdict{Reason: scope.GardenerManaged}
		return s
	}
	url := flagged("x")
	url.Service, url.URL = nil, "https://example.com"
	missing := map[types.NamespacedName]bool{{Namespace: "hooks", Name: "hook"}: true}
	out := configuration("a", harmless())
	out.Hooks[0].Scope = scope.Verdict{Reason: scope.OutOfReach}
	for _, tc := range []struct {
		name string
		in   gate.Ahead
		want []string
	}{
		{"nothing", gate.Ahead{Subjects: []gate.Subject{configuration("a", flagged("x"))}}, []string{}},
		{"a Service is missing", gate.Ahead{Subjects: []gate.Subject{configuration("a", flagged("x"), flagged("y"))}, Missing: missing}, []string{"Orphan"}},
		{"a Service is missing that no hook in scope needs", gate.Ahead{Subjects: []gate.Subject{out}, Missing: missing}, []string{}},
		{"Gardener's own has its backend in the Shoot", gate.Ahead{Subjects: []gate.Subject{gardeners(flagged("x"))}}, []string{"ManagedByGardener"}},
		{"Gardener's own has its backend in the Shoot and is harmless", gate.Ahead{Subjects: []gate.Subject{gardeners(harmless())}}, []string{}},
		{"Gardener's own has its backend on the seed", gate.Ahead{Subjects: []gate.Subject{gardeners(url)}}, []string{}},
		{"Gardener finds conversion webhooks", gate.Ahead{Constraints: []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.ShootCRDsWithProblematicConversionWebhooks, Status: gardencorev1beta1.ConditionFalse}}}, []string{"ConversionWebhook"}},
		{"Gardener finds no conversion webhooks", gate.Ahead{Constraints: []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.ShootCRDsWithProblematicConversionWebhooks, Status: gardencorev1beta1.ConditionTrue},
			{Type: gardencorev1beta1.ShootHibernationPossible, Status: gardencorev1beta1.ConditionFalse}}}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(reasons(gate.Warnings(tc.in))).To(Equal(tc.want))
		})
	}
}

func TestWarningsOfTimeouts(t *testing.T) {
	onLeases := func(mutating bool) hook.Hook {
		h := onNodes("lease", "Fail", 10)
		h.Mutating = mutating
		h.Rules = []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
		}}
		return h
	}
	mutating := onNodes("m", "Fail", 30)
	mutating.Mutating = true
	many := func(n int, h hook.Hook) gate.Subject {
		var all []hook.Hook
		for range n {
			all = append(all, h)
		}
		return configuration("m", all...)
	}
	validating := configuration("v", onLeases(false), onLeases(false))
	for _, tc := range []struct {
		name     string
		subjects []gate.Subject
		mutating int32
		want     []string
	}{
		{"seven on leases and a validating one stand 10 s", []gate.Subject{many(7, onLeases(true)), validating}, 1, []string{"TimeoutsAddUp"}},
		{"six stand 9 s", []gate.Subject{many(6, onLeases(true)), validating}, 1, []string{}},
		{"validating ones do not add up", []gate.Subject{many(20, onLeases(false))}, 1, []string{}},
		{"on other resources they may take longer", []gate.Subject{many(30, mutating)}, 1, []string{}},
		{"but not for ever", []gate.Subject{many(34, mutating)}, 1, []string{"TimeoutsAddUp"}},
		{"the configured timeout counts", []gate.Subject{many(4, mutating)}, 10, []string{"TimeoutsAddUp"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := gate.Warnings(gate.Ahead{Subjects: tc.subjects, OpenMutating: tc.mutating, OpenValidating: 3})
			NewWithT(t).Expect(reasons(found)).To(Equal(tc.want))
		})
	}
}
