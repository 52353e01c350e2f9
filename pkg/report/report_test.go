// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/report"
)

const (
	good        = gardencorev1beta1.ConditionTrue
	bad         = gardencorev1beta1.ConditionFalse
	progressing = gardencorev1beta1.ConditionProgressing
	unknown     = gardencorev1beta1.ConditionUnknown
)

func hookIn(state decide.State, change ...func(*report.Hook)) report.Hook {
	h := report.Hook{Kind: "ValidatingWebhookConfiguration", Configuration: "cfg", Hook: strings.ToLower(string(state))}
	h.State = state
	for _, c := range change {
		c(&h)
	}
	return h
}

func open(h *report.Hook)     { h.OpenNow = true; recorded(h) }
func recorded(h *report.Hook) { h.Record = &v1alpha1.HookRecord{} }
func says(message string) func(*report.Hook) {
	return func(h *report.Hook) { h.Message = message }
}

type condition struct {
	name    string
	in      report.Input
	status  gardencorev1beta1.ConditionStatus
	reason  string
	message string
}

func check(t *testing.T, cases []condition) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			status, reason, message := report.Condition(c.in)
			g.Expect(status).To(Equal(c.status))
			g.Expect(reason).To(Equal(c.reason))
			g.Expect(message).To(ContainSubstring(c.message))
			g.Expect(report.Status(c.in).Message).To(Equal(message))
		})
	}
}

func of(p phase.Phase, hooks ...report.Hook) report.Input {
	return report.Input{Phase: p, Mode: v1alpha1.ModeGuard, Hooks: hooks}
}

func TestConditionGoingDown(t *testing.T) {
	letGo := func(p phase.Phase, hooks ...report.Hook) report.Input {
		in := of(p, hooks...)
		in.Cycle = &v1alpha1.Cycle{LetGo: true, MayNotWake: "cfg/hook cannot be opened: spec is bad"}
		return in
	}
	readOnly := of(phase.GoingDown)
	readOnly.ReadOnly = "it is newer"
	check(t, []condition{
		{"going down it counts what is open", of(phase.GoingDown, hookIn(decide.Open, open), hookIn(decide.Reverted, recorded)),
			progressing, v1alpha1.ReasonOpening, "goes to sleep, 1 webhook is fail-open"},
		{"and more of them", of(phase.GoingDown, hookIn(decide.Open, open), hookIn(decide.Stabilizing, open)),
			progressing, v1alpha1.ReasonOpening, "2 webhooks are fail-open"},
		{"a hibernation that only holds back is not let go", report.Input{Phase: phase.GoingDown, Cycle: &v1alpha1.Cycle{}},
			progressing, v1alpha1.ReasonOpening, "0 webhooks are"},
		{"let go, it names what could not be opened", letGo(phase.GoingDown, hookIn(decide.NotOpenable, says("spec is bad"))),
			progressing, v1alpha1.ReasonMayNotWake, "cfg/hook cannot be opened: spec is bad"},
		{"let go without a name, as after an API server that did not answer", letGo(phase.GoingDown), progressing, v1alpha1.ReasonMayNotWake, "may not wake up."},
		{"let go, that is still said of the sleeping Shoot", letGo(phase.Asleep), progressing, v1alpha1.ReasonMayNotWake, "may not wake up."},
		{"a record that cannot be written opens nothing", readOnly, progressing, v1alpha1.ReasonRecordNotWritten, "it is newer"},
		{"asleep, open hooks are no trouble", of(phase.Asleep, hookIn(decide.Open, open)), good, v1alpha1.ReasonAsleep, "sleeps, 1 webhook is fail-open"},
		{"let go counts no more when it wakes up", letGo(phase.WakingUp), good, v1alpha1.ReasonEnforced, ""},
	})
}

func TestConditionAfterWakeUp(t *testing.T) {
	var all []condition
	for _, p := range []phase.Phase{phase.WakingUp, phase.Awake} {
		for state, pending := range map[decide.State]bool{
			decide.Open: true, decide.Stabilizing: true, decide.Reverted: true, decide.Returning: true, decide.Watched: false, decide.Done: false,
			decide.Gone: false, decide.Enforced: false, decide.Left: false, decide.NotOpenable: false,
		} {
			c := condition{fmt.Sprintf("%s, a hook that is %s", p, state), of(p, hookIn(state, says("because"))), good, v1alpha1.ReasonEnforced, "No webhook"}
			if state == decide.Open || state == decide.Stabilizing {
				open(&c.in.Hooks[0])
			}
			if pending {
				c.status, c.reason = progressing, v1alpha1.ReasonFailOpen
				c.message = "1 webhook is not given back yet: cfg/" + strings.ToLower(string(state)) + " (because)"
			}
			if state == decide.NotOpenable && p == phase.WakingUp {
				c.status, c.reason, c.message = progressing, v1alpha1.ReasonMayNotWake, "may not wake up, 1 webhook is not fail-open as the wake-up needs it: cfg/notopenable (because)"
			}
			all = append(all, c)
		}
	}
	check(t, all)
}

func TestConditionAlarms(t *testing.T) {
	unreachable := func(hooks ...report.Hook) report.Input {
		in := of(phase.Unreachable, hooks...)
		in.ShootError = "connection refused"
		return in
	}
	waking, ended := unreachable(), unreachable()
	waking.Cycle, ended.Cycle = &v1alpha1.Cycle{}, &v1alpha1.Cycle{Ended: &metav1.Time{}}
	refused := hookIn(decide.Open, recorded, says("forbidden"))
	refused.Action = decide.OpenIt
	readOnly, config := of(phase.Awake), of(phase.Awake)
	readOnly.ReadOnly, readOnly.ConfigError = "it is damaged", "mode: Gard"
	config.ConfigError = "mode: Gard"
	configAndOpen := of(phase.WakingUp, hookIn(decide.Open, open))
	configAndOpen.ConfigError, configAndOpen.ReadOnly = "mode: Gard", "it is damaged"
	check(t, []condition{
		{"a hook open past the deadline", of(phase.Awake, hookIn(decide.StillOpen, open, says("no endpoints"))),
			bad, v1alpha1.ReasonStillOpen, "1 webhook is still fail-open, the backend does not answer: cfg/stillopen (no endpoints)"},
		{"a hook that the pass could not open in a wake-up", of(phase.WakingUp, refused, hookIn(decide.Open, open)),
			progressing, v1alpha1.ReasonMayNotWake, "1 webhook is not fail-open as the wake-up needs it: cfg/open (forbidden)"},
		{"an API server that does not answer in a wake-up with nothing open yet", waking, unknown, v1alpha1.ReasonUnreachable, "0 webhooks are on record"},
		{"one that does not answer after it", ended, good, v1alpha1.ReasonEnforced, ""},
		{"an original that nobody knows", of(phase.WakingUp, hookIn(decide.OriginalUnknown)), bad, v1alpha1.ReasonOriginalUnknown, "by hand"},
		{"also going down", of(phase.GoingDown, hookIn(decide.OriginalUnknown)), bad, v1alpha1.ReasonOriginalUnknown, "by hand"},
		{"it comes before one open past the deadline", of(phase.Awake, hookIn(decide.StillOpen, open), hookIn(decide.OriginalUnknown)),
			bad, v1alpha1.ReasonOriginalUnknown, "cfg/originalunknown"},
		{"a hook given back in vain that is open", of(phase.WakingUp, hookIn(decide.RestoreFailed, open)), bad, v1alpha1.ReasonRestoreFailed, "three times"},
		{"a hook given back in vain that stands at its own values", of(phase.WakingUp, hookIn(decide.RestoreFailed)),
			progressing, v1alpha1.ReasonRestoreFailed, "three times"},
		{"that does not hide one open past the deadline", of(phase.Awake, hookIn(decide.RestoreFailed), hookIn(decide.StillOpen, open)),
			bad, v1alpha1.ReasonStillOpen, ""},
		{"unreachable with hooks on record", unreachable(hookIn(decide.Open, open), hookIn(decide.Watched, recorded)),
			unknown, v1alpha1.ReasonUnreachable, "does not answer, 2 webhooks are on record: connection refused"},
		{"unreachable with a hook that is not on record", unreachable(hookIn(decide.Enforced)), good, v1alpha1.ReasonEnforced, ""},
		{"unreachable with nothing on record", unreachable(), good, v1alpha1.ReasonEnforced, ""},
		{"unreachable with a hook that is gone", unreachable(hookIn(decide.Gone, recorded)), good, v1alpha1.ReasonEnforced, ""},
		{"unreachable comes before all else", unreachable(hookIn(decide.StillOpen, open)), unknown, v1alpha1.ReasonUnreachable, ""},
		{"a record that is not written", readOnly, progressing, v1alpha1.ReasonRecordNotWritten, "it is damaged"},
		{"a configuration that cannot be used", config, progressing, v1alpha1.ReasonConfigInvalid, "mode: Gard"},
		{"what is open comes before both", configAndOpen, progressing, v1alpha1.ReasonFailOpen, ""},
	})
}

func TestConditionMessage(t *testing.T) {
	g := NewWithT(t)
	_, _, letGo := report.Condition(report.Input{Phase: phase.Asleep, Cycle: &v1alpha1.Cycle{LetGo: true}})
	g.Expect(letGo).To(HaveSuffix("may not wake up."), "nothing is known of hooks")

	var hooks []report.Hook
	for i := range 5 {
		hooks = append(hooks, hookIn(decide.Open, open, func(h *report.Hook) { h.Hook = fmt.Sprint("h", i) }))
	}
	_, _, want := report.Condition(of(phase.WakingUp, hooks...))
	g.Expect(want).To(HaveSuffix("cfg/h0, cfg/h1, cfg/h2, and 2 more"))
	_, _, four := report.Condition(of(phase.WakingUp, hooks[:4]...))
	g.Expect(four).To(HaveSuffix("cfg/h0, cfg/h1, cfg/h2, and 1 more"))
	_, _, three := report.Condition(of(phase.WakingUp, hooks[:3]...))
	g.Expect(three).To(HaveSuffix("cfg/h0, cfg/h1, cfg/h2"))

	slices.Reverse(hooks)
	_, _, message := report.Condition(of(phase.WakingUp, hooks...))
	g.Expect(message).To(Equal(want), "the order in which hooks come does not matter")
	g.Expect(hooks[0].Hook).To(Equal("h4"), "the caller's order stays")

}

func TestConditionMessageFitsATooltip(t *testing.T) {
	const most = 300
	long := strings.Repeat("ä", 2*most)
	var hooks []report.Hook
	for i := range 5 {
		hooks = append(hooks, hookIn(decide.Open, open, recorded, says(long), func(h *report.Hook) { h.Hook = fmt.Sprint("h", i) }))
	}
	still := hookIn(decide.StillOpen, open, says(long))
	for name, in := range map[string]report.Input{
		"of open hooks":                   of(phase.WakingUp, hooks...),
		"of hooks open past the deadline": of(phase.Awake, append(hooks, still)...),
		"of an API server's error":        {Phase: phase.Unreachable, Hooks: hooks, ShootError: long},
		"of a hibernation that was let go": {
			Phase: phase.GoingDown, Cycle: &v1alpha1.Cycle{LetGo: true, MayNotWake: long},
		},
		"of a providerConfig":  {Phase: phase.Awake, ConfigError: long},
		"of a record not ours": {Phase: phase.Awake, ReadOnly: long},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, _, message := report.Condition(in)
			g.Expect([]rune(message)).To(HaveLen(most))
			g.Expect(message).To(HaveSuffix("ä…"))
			g.Expect(report.Status(in).Message).To(Equal(message))
		})
	}
}

func TestStatus(t *testing.T) {
	g := NewWithT(t)
	since := metav1.Now()
	by := func(who string) func(*report.Hook) {
		return func(h *report.Hook) {
			h.Record = &v1alpha1.HookRecord{Returned: &since, ReturnedBy: who, Opened: &since, Original: v1alpha1.Original{FailurePolicy: "Fail", TimeoutSeconds: 7}}
		}
	}
	s := report.Status(of(phase.WakingUp,
		hookIn(decide.Enforced), hookIn(decide.Left), hookIn(decide.Left, says("the label says so")),
		hookIn(decide.Done, by(v1alpha1.ReturnedByGuard)), hookIn(decide.Watched, by(v1alpha1.ReturnedByOwner)),
		hookIn(decide.Returning, by(v1alpha1.ReturnedByGuard)),
		hookIn(decide.Open, open), hookIn(decide.StillOpen, open), hookIn(decide.NotOpenable),
	))
	var states []string
	for _, h := range s.Hooks {
		states = append(states, h.State)
	}
	g.Expect(states).To(Equal([]string{"NotOpenable", "StillOpen", "Open", "Returning", "Watched", "Done", "Left"}), "what needs attention comes first")
	g.Expect([]int32{s.Open, s.Restored, s.RestoredByOwner, s.More}).To(Equal([]int32{2, 2, 1, 0}))
	g.Expect(s.Hooks[5]).To(Equal(v1alpha1.HookStatus{
		Kind: "ValidatingWebhookConfiguration", Configuration: "cfg", Hook: "done", State: "Done",
		Original: &v1alpha1.Original{FailurePolicy: "Fail", TimeoutSeconds: 7}, Since: &since,
	}))
	g.Expect(s.TypeMeta).To(Equal(metav1.TypeMeta{APIVersion: "hibernation-guard.extensions.gardener.cloud/v1alpha1", Kind: "GuardStatus"}))
	g.Expect(s.Phase).To(Equal("WakingUp"))
	g.Expect(s.Mode).To(Equal(v1alpha1.ModeGuard))
}

func TestStatusIsBounded(t *testing.T) {
	for n, more := range map[int]int32{50: 0, 51: 1, 500: 450} {
		t.Run(fmt.Sprintf("of %d hooks %d are left out", n, more), func(t *testing.T) {
			g := NewWithT(t)
			var hooks []report.Hook
			for i := range n {
				hooks = append(hooks, hookIn(decide.Open, open, says(strings.Repeat("x", 10_000)), func(h *report.Hook) { h.Hook = fmt.Sprint(i) }))
			}
			s := report.Status(of(phase.WakingUp, append(hooks, hookIn(decide.Enforced), hookIn(decide.Left))...))
			g.Expect(s.Hooks).To(HaveLen(50))
			g.Expect(s.More).To(Equal(more))
			g.Expect(s.Open).To(BeEquivalentTo(n), "the counts are of all")
			for _, h := range s.Hooks {
				g.Expect(len([]rune(h.Message))).To(Equal(300))
			}
		})
	}
}

func TestFromRecord(t *testing.T) {
	g := NewWithT(t)
	returned := metav1.Now()
	hooks := report.FromRecord(map[string]v1alpha1.HookRecord{
		"a": {Kind: "k", Configuration: "c", Hook: "open"},
		"b": {Kind: "k", Configuration: "c", Hook: "back", Returned: &returned},
		"c": {Kind: "k", Configuration: "c", Hook: "gone", Gone: true},
	})
	states, openNow := map[string]decide.State{}, map[string]bool{}
	for _, h := range hooks {
		g.Expect(h.Kind + h.Configuration).To(Equal("kc"))
		g.Expect(h.Record).NotTo(BeNil())
		states[h.Hook], openNow[h.Hook] = h.State, h.OpenNow
	}
	g.Expect(states).To(Equal(map[string]decide.State{"open": decide.Open, "back": decide.Watched, "gone": decide.Gone}))
	g.Expect(openNow).To(Equal(map[string]bool{"open": true, "back": false, "gone": false}))
	g.Expect(report.FromRecord(nil)).To(BeEmpty())
}
