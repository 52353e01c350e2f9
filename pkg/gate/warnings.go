// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	hibernationschedule "github.com/gardener/gardener/pkg/utils/hibernation"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

const (
	// withoutSchedule is how far ahead certificates are looked at when no wake-up is planned.
	withoutSchedule = 30 * 24 * time.Hour
	// leaseTime in seconds is after what time a kubelet gives up one renewal of its lease: its heartbeat client's timeout is
	// nodeStatusUpdateFrequency, 10 s by default (kubernetes 1.36: cmd/kubelet/app/server.go).
	leaseTime = 10
	// requestTime in seconds is after what time the API server gives up a request, all its hooks included: measured 34 s with
	// four mutating hooks that are Ignore and hang for 10 s each.
	requestTime = 34
)

// Ahead is what warnings depend on.
type Ahead struct {
	// Now is the time of the pass.
	Now time.Time
	// Subjects are all configurations of the Shoot.
	Subjects []Subject
	// Schedules of the Shoot's hibernation.
	Schedules []gardencorev1beta1.HibernationSchedule
	// Constraints in the Shoot's status.
	Constraints []gardencorev1beta1.Condition
	// Missing are the Services of hooks in scope that do not exist.
	Missing map[types.NamespacedName]bool
	// OpenValidating and OpenMutating are the timeouts of open hooks in seconds.
	OpenValidating, OpenMutating int32
}

// Warnings tells what may go wrong at the next sleep or wake-up although all is well today.
func Warnings(in Ahead) []v1alpha1.Finding {
	found := conversions(in.Constraints)
	found = append(found, timeouts(in)...)
	until := plannedWakeUp(in.Schedules, in.Now)
	for _, s := range in.Subjects {
		found = append(found, in.configuration(s, until)...)
	}
	return found
}

// plannedWakeUp is until when certificates must be valid: the first wake-up of the schedules after their next hibernation.
func plannedWakeUp(schedules []gardencorev1beta1.HibernationSchedule, now time.Time) time.Time {
	parsed, err := hibernationschedule.Parse(schedules)
	if err != nil {
		return now.Add(withoutSchedule) // gardener-apiserver accepts no such schedule
	}
	asleep := earliest(parsed, hibernationschedule.Hibernate, now)
	if asleep.IsZero() {
		return now.Add(withoutSchedule)
	}
	if awake := earliest(parsed, hibernationschedule.WakeUp, asleep); !awake.IsZero() {
		return awake
	}
	return asleep.Add(withoutSchedule)
}

func earliest(schedules []hibernationschedule.ParsedSchedule, operation hibernationschedule.Operation, after time.Time) time.Time {
	var first time.Time
	for _, s := range schedules {
		if s.Operation != operation {
			continue
		}
		if next := s.Next(after); !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// conversions passes Gardener's own finding about conversion webhooks on.
func conversions(constraints []gardencorev1beta1.Condition) []v1alpha1.Finding {
	for _, c := range constraints {
		if c.Type == gardencorev1beta1.ShootCRDsWithProblematicConversionWebhooks && c.Status != gardencorev1beta1.ConditionTrue {
			return []v1alpha1.Finding{{Reason: v1alpha1.FindingConversion,
				Message: "A conversion webhook has no failure policy, nobody can open it. Migrate its CRD to one stored version. " + c.Message}}
		}
	}
	return nil
}

// configuration warns of one configuration; of hooks with the same trouble it names the first.
func (in Ahead) configuration(s Subject, until time.Time) []v1alpha1.Finding {
	var found []v1alpha1.Finding
	told := map[string]bool{}
	tell := func(h hook.Hook, reason, message string) {
		if message != "" && !told[message] {
			told[message] = true
			f := about(s.Configuration, reason, message)
			f.Hook = h.Name
			found = append(found, f)
		}
	}
	for i, h := range s.Configuration.Hooks {
		about := s.Hooks[i]
		if h.Service == nil {
			continue
		}
		if about.Scope.Reason == scope.GardenerManaged && Problematic(h) {
			tell(h, v1alpha1.FindingGardenerManaged, fmt.Sprintf("Gardener or an extension manages the hook, and its backend is the Service %s/%s "+
				"in the Shoot. The guard leaves it alone; whoever owns it must see to it that the Shoot wakes up.", h.Service.Namespace, h.Service.Name))
		}
		if !about.Scope.InScope {
			continue
		}
		if in.Missing[types.NamespacedName{Namespace: h.Service.Namespace, Name: h.Service.Name}] {
			tell(h, v1alpha1.FindingOrphan, fmt.Sprintf("The Service %s/%s does not exist. If nobody needs the hook any more, delete it.",
				h.Service.Namespace, h.Service.Name))
		}
		tell(h, v1alpha1.FindingCAExpires, expiry(h.CABundle, until))
	}
	return found
}

// expiry warns of a bundle whose last certificate expires before a time. What cannot be read is left to the API server.
func expiry(bundle []byte, until time.Time) string {
	var last time.Time
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	if last.IsZero() || !last.Before(until) {
		return ""
	}
	return fmt.Sprintf("The CA in caBundle expires on %s, before the planned wake-up or within 30 days. Renew it before the Shoot sleeps.",
		last.UTC().Format(time.RFC3339))
}

// timeouts warns if open hooks that hang would hold a request up for too long. Mutating ones are called one after the other,
// validating ones at the same time.
func timeouts(in Ahead) []v1alpha1.Finding {
	all, leases := 0, 0
	longest, longestLease := 0, 0
	for _, s := range in.Subjects {
		for i, h := range s.Configuration.Hooks {
			if !s.Hooks[i].Scope.InScope {
				continue
			}
			own := h.Values
			if s.Hooks[i].Original != nil {
				own = *s.Hooks[i].Original
			}
			open := int(hook.OpenValues(h, own, in.OpenValidating, in.OpenMutating).Timeout)
			if h.Mutating {
				all += open
			} else {
				longest = max(longest, open)
			}
			if !reachesAny(h, nodeLeases) {
				continue
			}
			if h.Mutating {
				leases += open
			} else {
				longestLease = max(longestLease, open)
			}
		}
	}
	const advice = " while nobody answers behind them. Lower openTimeouts.mutating, or narrow their rules."
	var found []v1alpha1.Finding
	if sum := leases + longestLease; leases > 0 && sum >= leaseTime {
		found = append(found, v1alpha1.Finding{Reason: v1alpha1.FindingTimeouts, Message: fmt.Sprintf(
			"Even while open, the hooks on leases may take %d s, and a kubelet waits %d s"+advice, sum, leaseTime)})
	}
	if sum := all + longest; all > 0 && sum >= requestTime {
		found = append(found, v1alpha1.Finding{Reason: v1alpha1.FindingTimeouts, Message: fmt.Sprintf(
			"Even while open, the hooks may take %d s, and the API server ends a request after %d s"+advice, sum, requestTime)})
	}
	return found
}

// nodeLeases are the leases that kubelets renew.
var nodeLeases = []critical{{"coordination.k8s.io", []string{"v1", "v1beta1"}, []string{"leases"}, place{
	namespaceLabels: labels.Set{corev1.LabelMetadataName: corev1.NamespaceNodeLease},
}}}
