// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// kept is a result with which all promises are kept.
func kept(expected []Hook) *Result {
	blocked := []Blocked{{Verb: "create", Resource: "nodes", Text: `failed calling webhook "a"`, Count: 2}}
	r := &Result{}
	r.WithoutGuard.Sleep, r.WithoutGuard.Wake = Sleep{Forced: true, Blocked: blocked}, Wake{Blocked: blocked}
	w := &r.WithGuard
	w.OpenWhenAPIStopped = append([]Hook(nil), expected...)
	w.Wake, w.NodesReady = Wake{NodeReady: true, Finished: true}, true
	w.Seconds.APIServerToNodeReady = 89.9
	w.LastProcessToLastIgnore = 3
	w.Restored = Restored{ByGuard: 1, ByOwner: len(expected) - 1}
	w.Access.TokensExpired = true
	w.Policies = Policies{ViolatingPodDenied: true, GoodPodAdmitted: true}
	return r
}

func TestPromises(t *testing.T) {
	expected, err := expectedHooks()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	another := Hook{Kind: "ValidatingWebhookConfiguration", Configuration: "another", Hook: "one"}
	for _, tc := range []struct {
		name   string
		spoil  func(*Result)
		broken string // part of the promise; empty: none is broken
		found  string
	}{
		{"everything went well", func(*Result) {}, "", ""},
		{"the sleep without the guard needed no force", func(r *Result) { r.WithoutGuard.Sleep.Forced = false }, "", ""},
		{"a node is Ready without the guard", func(r *Result) { r.WithoutGuard.Wake.NodeReady = true }, "does not wake up", "without: node Ready true"},
		{"the guarded run needs half of the time", func(r *Result) { r.WithGuard.Seconds.APIServerToNodeReady = 90 }, "does not wake up", "90.0 s"},
		{"nothing is refused during the sleep without the guard", func(r *Result) { r.WithoutGuard.Sleep.Blocked = nil }, "says what it refuses", "0 kinds of refusals during the sleep"},
		{"nothing is refused during the wake-up without the guard", func(r *Result) { r.WithoutGuard.Wake.Blocked = nil }, "says what it refuses", "0 during the wake-up"},
		{"the guarded sleep is forced", func(r *Result) { r.WithGuard.Sleep.Forced = true }, "falls asleep by itself", "forced"},
		{"a hook is not open", func(r *Result) { r.WithGuard.OpenWhenAPIStopped = expected[1:] }, "all hooks in scope are open", expected[0].Hook},
		{"a hook too many is open", func(r *Result) { r.WithGuard.OpenWhenAPIStopped = append(r.WithGuard.OpenWhenAPIStopped, another) }, "all hooks in scope are open", "unexpected: another / one"},
		{"the last hook is opened late", func(r *Result) { r.WithGuard.LastProcessToLastIgnore = 3.1 }, "open in time", "3.1 s"},
		{"a node is not Ready with the guard", func(r *Result) { r.WithGuard.NodesReady = false }, "wakes up by itself", "nodes Ready false"},
		{"the guarded wake-up does not end", func(r *Result) { r.WithGuard.Wake.Finished = false }, "wakes up by itself", "finished false"},
		{"an original is lost", func(r *Result) { r.WithGuard.OriginalsLost = 1 }, "original back", "1 lost"},
		{"a hook was not seen restored", func(r *Result) { r.WithGuard.Restored.ByGuard = 0 }, "original back", "2 of 3 seen restored"},
		{"another field is changed", func(r *Result) { r.WithGuard.OtherFieldsChanged = 1; r.WithGuard.Differences = []string{"rules"} }, "no other field", "1 changed: rules"},
		{"something is left behind", func(r *Result) { r.WithGuard.Leftovers = 1; r.WithGuard.Differences = []string{"annotation"} }, "left behind", "1 left: annotation"},
		{"the tokens had not expired", func(r *Result) { r.WithGuard.Access.TokensExpired = false }, "the rights it was granted", "expired false"},
		{"a right was missing", func(r *Result) { r.WithGuard.Access.Wrong = []string{"list pods"} }, "the rights it was granted", "list pods"},
		{"the violating pod is not denied", func(r *Result) { r.WithGuard.Policies.ViolatingPodDenied = false }, "policies bite", "denied false"},
		{"the good pod is not admitted", func(r *Result) { r.WithGuard.Policies.GoodPodAdmitted = false }, "policies bite", "admitted false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			r := kept(expected)
			tc.spoil(r)
			r.WithoutGuard.Deadlocked = deadlocked(r)
			var broken []Promise
			for _, p := range judge(r, expected) {
				if !p.Kept {
					broken = append(broken, p)
				}
			}
			if tc.broken == "" {
				g.Expect(broken).To(BeEmpty())
				return
			}
			g.Expect(broken).To(HaveLen(1))
			g.Expect(broken[0].Promise).To(ContainSubstring(tc.broken))
			g.Expect(broken[0].Found).To(ContainSubstring(tc.found))
		})
	}
}

func TestTableShowsWhatWentWrong(t *testing.T) {
	g := NewWithT(t)
	expected, err := expectedHooks()
	g.Expect(err).NotTo(HaveOccurred())
	r := kept(expected)
	g.Expect(table(r, expected)).To(And(
		ContainSubstring("HANGS, forced after 60 s"), ContainSubstring("DEADLOCK, none in 180 s"), ContainSubstring("89.9 s"),
		MatchRegexp(`hooks open when the API server ended +0 of 3 +3 of 3\n`),
		ContainSubstring("3 of 3 (1 by the guard, 2 by their owner)"),
	))
	r.WithGuard.Policies = Policies{}
	g.Expect(table(r, expected)).To(And(ContainSubstring("ADMITTED"), ContainSubstring("REFUSED")))
}

func TestWrap(t *testing.T) {
	g := NewWithT(t)
	g.Expect(wrap("two  columns", 12)).To(Equal([]string{"two  columns"}), "what fits stays as it is")
	g.Expect(wrap("two  columns", 11)).To(Equal([]string{"two columns"}))
	g.Expect(wrap("aa bb cc\ndd", 5)).To(Equal([]string{"aa bb", "cc dd"}))
	g.Expect(wrap("a verylongword b", 5)).To(Equal([]string{"a", "verylongword", "b"}))
	g.Expect(wrap("", 5)).To(Equal([]string{""}))
}
