// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package report turns decisions into what people and machines read: the Extension's condition and providerStatus, and the
// report in the Shoot.
package report

import (
	"cmp"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

const (
	// namedHooks is how many hooks a condition message names: it ends in a dashboard's tooltip.
	namedHooks = 3
	// maxMessage bounds each message in characters: the API server's own words on a large object can be very long.
	maxMessage = 300
)

// Hook is a hook with the decision on it.
type Hook struct {
	Kind, Configuration, Hook string
	decide.Decision
	// OpenNow says that the hook stands at other values than its original because of the guard.
	OpenNow bool
}

// Input is all that is told.
type Input struct {
	// Phase of the Shoot.
	Phase phase.Phase
	// Mode in force.
	Mode v1alpha1.Mode
	// Hooks are those of the last pass that saw the Shoot; without one those on record.
	Hooks []Hook
	// Cycle on record.
	Cycle *v1alpha1.Cycle
	// ConfigError is why the providerConfig could not be used; empty when it could.
	ConfigError string
	// ShootError is why the Shoot's API server did not answer; empty when it did.
	ShootError string
	// Gate and Findings are those of the last pass that judged them; nil and none before the first.
	Gate     *v1alpha1.GateStatus
	Findings []v1alpha1.Finding
	// ReadOnly is why the record is not rewritten and nothing new is opened; empty when it is.
	ReadOnly string
}

// FromRecord returns the hooks on record as they are told when the Shoot cannot be looked at: those that were not given back
// count as open.
func FromRecord(hooks map[string]v1alpha1.HookRecord) []Hook {
	var out []Hook
	for _, r := range hooks {
		state := decide.Open
		switch {
		case r.Gone:
			state = decide.Gone
		case r.Returned != nil:
			state = decide.Watched
		}
		out = append(out, Hook{
			Kind: r.Kind, Configuration: r.Configuration, Hook: r.Hook, OpenNow: state == decide.Open,
			Decision: decide.Decision{State: state, Record: r.DeepCopy()},
		})
	}
	return out
}

// rank orders hooks by how much they need attention.
var rank = map[decide.State]int{
	decide.OriginalUnknown: 0, decide.RestoreFailed: 1, decide.NotOpenable: 2, decide.StillOpen: 3, decide.Open: 4,
	decide.Stabilizing: 5, decide.Reverted: 6, decide.Returning: 7, decide.Watched: 8, decide.Gone: 9, decide.Done: 10,
	decide.Enforced: 11, decide.Left: 12,
}

// Status returns the machine-readable report, bounded to v1alpha1.MaxStatusHooks hooks.
func Status(in Input) *v1alpha1.GuardStatus {
	s := &v1alpha1.GuardStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "GuardStatus"},
		Phase:    string(in.Phase), Mode: in.Mode,
	}
	in.Hooks = sorted(in.Hooks)
	for _, h := range in.Hooks {
		count(s, h)
		if h.State == decide.Enforced || (h.State == decide.Left && h.Message == "") {
			continue
		}
		if len(s.Hooks) == v1alpha1.MaxStatusHooks {
			s.More++
			continue
		}
		s.Hooks = append(s.Hooks, hookStatus(h))
	}
	_, _, s.Message = Condition(in)
	s.Findings = bounded(in.Findings)
	if in.Gate != nil {
		s.Gate = in.Gate.DeepCopy()
		s.Gate.Blocking = bounded(in.Gate.Blocking)
	}
	return s
}

// bounded cuts findings and their messages.
func bounded(findings []v1alpha1.Finding) []v1alpha1.Finding {
	var out []v1alpha1.Finding
	for _, f := range findings[:min(len(findings), v1alpha1.MaxFindings)] {
		f.Message = short(f.Message)
		out = append(out, f)
	}
	return out
}

// sorted puts what needs attention first; the rest of the order only has to be the same each time.
func sorted(hooks []Hook) []Hook {
	return slices.SortedFunc(slices.Values(hooks), func(a, b Hook) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.Hook, b.Hook))
	})
}

func count(s *v1alpha1.GuardStatus, h Hook) {
	if h.OpenNow {
		s.Open++
	}
	if h.Record == nil || h.Record.Returned == nil {
		return
	}
	if h.Record.ReturnedBy == v1alpha1.ReturnedByOwner {
		s.RestoredByOwner++
	} else {
		s.Restored++
	}
}

func hookStatus(h Hook) v1alpha1.HookStatus {
	out := v1alpha1.HookStatus{
		Kind: h.Kind, Configuration: h.Configuration, Hook: h.Hook,
		State: string(h.State), Reason: h.Reason, Message: short(h.Message),
	}
	if h.Record != nil {
		out.Original, out.Since = &h.Record.Original, h.Record.Opened
	}
	return out
}

// Condition returns status, reason and message of the Extension's condition SystemComponentsHealthy. The message has at most 300
// characters and stays the same as long as what it tells does.
func Condition(in Input) (gardencorev1beta1.ConditionStatus, string, string) {
	status, reason, message := condition(in)
	return status, reason, short(message)
}

func condition(in Input) (gardencorev1beta1.ConditionStatus, string, string) {
	in.Hooks = sorted(in.Hooks)
	if status, reason, message := alarm(in); status != "" {
		return status, reason, message
	}
	if status, reason, message := goingToSleep(in); status != "" {
		return status, reason, message
	}
	if stuck := pick(in.Hooks, notOpened); in.Phase == phase.WakingUp && len(stuck) > 0 {
		return gardencorev1beta1.ConditionProgressing, v1alpha1.ReasonMayNotWake,
			fmt.Sprintf("The Shoot may not wake up, %s not fail-open as the wake-up needs it: %s", webhooks(len(stuck)), names(stuck))
	}
	pending := pick(in.Hooks, func(h Hook) bool { return h.OpenNow || h.State == decide.Reverted || h.State == decide.Returning })
	switch {
	case len(pending) > 0:
		return gardencorev1beta1.ConditionProgressing, v1alpha1.ReasonFailOpen,
			fmt.Sprintf("After the wake-up %s not given back yet: %s", webhooks(len(pending)), names(pending))
	case in.ReadOnly != "":
		return recordNotWritten(in)
	case in.ConfigError != "":
		return gardencorev1beta1.ConditionProgressing, v1alpha1.ReasonConfigInvalid,
			"The providerConfig is not used: " + short(in.ConfigError)
	default:
		return gardencorev1beta1.ConditionTrue, v1alpha1.ReasonEnforced, "No webhook is fail-open because of hibernation."
	}
}

// notOpened says that the pass wanted the hook open and could not open it.
func notOpened(h Hook) bool { return h.State == decide.NotOpenable || h.Action == decide.OpenIt }

// goingToSleep is what is told of a Shoot that sleeps or is about to.
func goingToSleep(in Input) (gardencorev1beta1.ConditionStatus, string, string) {
	open := webhooks(len(pick(in.Hooks, func(h Hook) bool { return h.OpenNow })))
	switch {
	case in.Phase != phase.GoingDown && in.Phase != phase.Asleep:
		return "", "", ""
	case in.Cycle != nil && in.Cycle.LetGo:
		message := "Hibernation was let go although webhooks could not be opened; the Shoot may not wake up."
		if in.Cycle.MayNotWake != "" {
			message += " " + in.Cycle.MayNotWake
		}
		return gardencorev1beta1.ConditionProgressing, v1alpha1.ReasonMayNotWake, message
	case in.Phase == phase.Asleep:
		return gardencorev1beta1.ConditionTrue, v1alpha1.ReasonAsleep,
			fmt.Sprintf("The Shoot sleeps, %s fail-open until it is awake.", open)
	case in.ReadOnly != "":
		return recordNotWritten(in)
	default:
		return gardencorev1beta1.ConditionProgressing, v1alpha1.ReasonOpening,
			fmt.Sprintf("The Shoot goes to sleep, %s fail-open.", open)
	}
}

func recordNotWritten(in Input) (gardencorev1beta1.ConditionStatus, string, string) {
	return gardencorev1beta1.ConditionProgressing, v1alpha1.ReasonRecordNotWritten,
		"The record is left as it is and no further webhook is set fail-open: " + short(in.ReadOnly)
}

// alarm returns what is told before all else.
func alarm(in Input) (gardencorev1beta1.ConditionStatus, string, string) {
	onRecord := pick(in.Hooks, func(h Hook) bool { return h.Record != nil && h.State != decide.Gone })
	if in.ShootError != "" && (len(onRecord) > 0 || in.Cycle != nil && in.Cycle.Ended == nil) {
		return gardencorev1beta1.ConditionUnknown, v1alpha1.ReasonUnreachable,
			fmt.Sprintf("The Shoot's API server does not answer, %s on record: %s", webhooks(len(onRecord)), short(in.ShootError))
	}
	if unknown := pick(in.Hooks, func(h Hook) bool { return h.State == decide.OriginalUnknown }); len(unknown) > 0 {
		return gardencorev1beta1.ConditionFalse, v1alpha1.ReasonOriginalUnknown,
			"Set failurePolicy and timeoutSeconds by hand, their values before the sleep are not known: " + names(withoutMessages(unknown))
	}
	if still := pick(in.Hooks, func(h Hook) bool { return h.State == decide.StillOpen }); len(still) > 0 {
		return gardencorev1beta1.ConditionFalse, v1alpha1.ReasonStillOpen,
			fmt.Sprintf("After the wake-up %s still fail-open, the backend does not answer: %s", webhooks(len(still)), names(still))
	}
	if failed := pick(in.Hooks, func(h Hook) bool { return h.State == decide.RestoreFailed }); len(failed) > 0 {
		status := gardencorev1beta1.ConditionProgressing
		if len(pick(failed, func(h Hook) bool { return h.OpenNow })) > 0 {
			status = gardencorev1beta1.ConditionFalse
		}
		return status, v1alpha1.ReasonRestoreFailed, "Given back three times in vain: " + names(failed)
	}
	return "", "", ""
}

func pick(hooks []Hook, match func(Hook) bool) []Hook {
	var out []Hook
	for _, h := range hooks {
		if match(h) {
			out = append(out, h)
		}
	}
	return out
}

func webhooks(n int) string {
	if n == 1 {
		return "1 webhook is"
	}
	return fmt.Sprintf("%d webhooks are", n)
}

// names names up to namedHooks hooks with what is wrong with their backends.
func names(hooks []Hook) string {
	var out string
	for i, h := range hooks {
		if i == namedHooks {
			return out + fmt.Sprintf(", and %d more", len(hooks)-i)
		}
		if i > 0 {
			out += ", "
		}
		out += h.Configuration + "/" + h.Hook
		if h.Message != "" {
			out += " (" + short(h.Message) + ")"
		}
	}
	return out
}

// withoutMessages leaves out what is wrong with each hook, where it is the same for all.
func withoutMessages(hooks []Hook) []Hook {
	out := slices.Clone(hooks)
	for i := range out {
		out[i].Message = ""
	}
	return out
}

// short cuts a message at maxMessage characters.
func short(message string) string {
	if runes := []rune(message); len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return message
}
