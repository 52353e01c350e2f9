// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// status tells of the gate as it stands now. A closed gate always has something in Blocking.
func (d *decision) status() v1alpha1.GateStatus {
	s := v1alpha1.GateStatus{State: v1alpha1.GateOpen}
	closing := 0
	for _, a := range d.all {
		if d.byUs(a) {
			s.Claimed++
		}
		if Closes(a.Configuration) {
			closing++
		}
		for _, f := range d.blocking(a) {
			if f.Reason == v1alpha1.FindingHidden {
				s.Unguarded++
			}
			if len(s.Blocking) < v1alpha1.MaxFindings && !slices.Contains(s.Blocking, f) {
				s.Blocking = append(s.Blocking, f)
			}
		}
	}
	switch {
	case closing > 0:
		s.State = v1alpha1.GateClosed
		s.Message = fmt.Sprintf("Gardener does not let the Shoot hibernate because of %d webhook configurations.", closing)
	case s.Claimed > 0:
		s.State = v1alpha1.GateLifted
		s.Message = fmt.Sprintf("%d webhook configurations are labelled %s=%s by the guard. As long as they are, they do not count for "+
			"MaintenancePreconditionsSatisfied either, and Gardener does not remediate them.", s.Claimed, v1alpha1.ClaimLabel, v1alpha1.ClaimValue)
	default:
		s.Message = "No webhook keeps Gardener from hibernating the Shoot."
	}
	if s.Unguarded > 0 {
		s.Message += fmt.Sprintf(" A label hides %d hooks from Gardener's check that the guard does not open.", s.Unguarded)
	}
	return s
}

// byUs says whether the configuration carries the label because of a claim.
func (d *decision) byUs(a assessed) bool {
	if !labelled(a.Configuration) {
		return false
	}
	claim, known := d.claims[a.key()]
	if a.kyverno() {
		_, claim, known = d.configMapClaim()
	}
	return known && !claim.Pending && claim.Removed < maxRemoved
}

// blocking is what there is to do about a configuration so that the gate is open, and rightly so.
func (d *decision) blocking(a assessed) []v1alpha1.Finding {
	c := a.Configuration
	if Hidden(c) {
		if a.gardeners {
			return nil
		}
		return each(a, v1alpha1.FindingHidden, func(i int) string {
			return "A label hides the hook from Gardener's check, and the guard does not open it: " + a.why(i) + " " + remedy(a.Hooks[i])
		})
	}
	found := each(a, v1alpha1.FindingNotGuarded, func(i int) string {
		return "Gardener flags the hook (" + values(c.Hooks[i]) + "), and the guard does not open it: " + a.why(i) + " " + remedy(a.Hooks[i])
	})
	if Remediated(c) {
		found = append(found, about(c, v1alpha1.FindingRemediated, "Gardener changed the configuration and keeps the gate closed as long as it has the annotation "+
			v1beta1constants.GardenerWarning+", which says what was changed. Give it its own values back and remove the annotation."))
	}
	if len(a.flagged) == 0 || len(a.blocked) > 0 {
		return found
	}
	return append(found, d.unclaimed(a))
}

// unclaimed says why a configuration that could be claimed is not.
func (d *decision) unclaimed(a assessed) v1alpha1.Finding {
	key := a.key()
	if a.kyverno() {
		key = kyvernoKey
	}
	note, noted := d.notes[key]
	settings := d.in.Settings
	switch {
	case settings.Left != nil:
		return *settings.Left
	case noted && a.kyverno():
		note.Kind, note.Name = configMap, KyvernoName
		return note
	case noted:
		return about(a.Configuration, note.Reason, note.Message)
	case settings.Frozen != "":
		return v1alpha1.Finding{Reason: v1alpha1.FindingClaimFailed, Message: "No label is set now: " + settings.Frozen}
	case a.kyverno() && !settings.KyvernoLabels:
		return v1alpha1.Finding{Reason: v1alpha1.FindingKyvernoLabels, Kind: configMap, Name: KyvernoName,
			Message: "kyverno.manageWebhookLabels is false, so the guard does not set Kyverno's " + KyvernoKey + ". " + byHand}
	case a.kyverno():
		return v1alpha1.Finding{Reason: v1alpha1.FindingKyvernoLabels, Kind: configMap, Name: KyvernoName,
			Message: "Kyverno is claimed only as a whole: the label goes into its ConfigMap once the guard opens each flagged hook."}
	}
	return about(a.Configuration, v1alpha1.FindingClaimFailed, "The label is about to be set.")
}

func each(a assessed, reason string, message func(i int) string) []v1alpha1.Finding {
	var found []v1alpha1.Finding
	for _, i := range a.blocked {
		f := about(a.Configuration, reason, message(i))
		f.Hook = a.Configuration.Hooks[i].Name
		found = append(found, f)
	}
	return found
}

func about(c hook.Configuration, reason, message string) v1alpha1.Finding {
	return v1alpha1.Finding{Reason: reason, Kind: string(c.Kind), Name: c.Name, Message: message}
}

// why the hook is not opened.
func (a assessed) why(i int) string {
	if about := a.Hooks[i]; about.Scope.InScope {
		return about.Cannot
	}
	return a.Hooks[i].Scope.Message
}

func values(h hook.Hook) string {
	return fmt.Sprintf("%s, %d s", h.Values.Policy, h.Values.Timeout)
}

func remedy(h Hook) string {
	const otherwise = "Make it Ignore with at most 15 s (3 s if it matches leases), or exclude kube-system by its namespaceSelector."
	switch h.Scope.Reason {
	case scope.UserLeave:
		return "Change that rule."
	case scope.LeaveLabel:
		return "Remove that label."
	case scope.DuplicateName:
		return "Rename one of them."
	}
	return otherwise
}

// Unopened are the hooks in claimed configurations that Gardener's rule flags and the guard does not open, with the reason as
// message: the gate let the Shoot pass, and it may not wake up.
func Unopened(subjects []Subject, claims map[string]v1alpha1.Claim) []v1alpha1.Finding {
	d := &decision{claims: claims}
	var found []v1alpha1.Finding
	for _, s := range subjects {
		if a := assess(s); d.byUs(a) {
			found = append(found, each(a, v1alpha1.FindingHidden, a.why)...)
		}
	}
	return found
}
