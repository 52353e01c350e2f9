// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package cycle_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

const (
	admissionGroup = "admissionregistration.k8s.io"
	kyvernoUser    = "system:serviceaccount:kyverno:kyverno-admission-controller"
)

// Open time-outs in seconds (design section 4).
var openTimeout = map[string]int{bench.KindValidating: 3, bench.KindMutating: 1}

func (c *cycle) beOpen(id bench.HookID) gomegatypes.GomegaMatcher {
	return gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Exists": BeTrue(), "FailurePolicy": Equal("Ignore"), "TimeoutSeconds": BeNumerically("<=", openTimeout[id.Kind]),
	})
}

func (c *cycle) beAt(o original) gomegatypes.GomegaMatcher {
	return gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Exists": BeTrue(), "FailurePolicy": Equal(o.policy), "TimeoutSeconds": Equal(o.timeout),
	})
}

// apiStopped is when the Shoot's API server was down for sure; nobody wrote between its end and then.
func (c *cycle) apiStopped() time.Time { return c.sleep[bench.StepHibernateControlPlane].Ended }

// expectAsleep judges how the Shoot went to sleep, and that a sleeping Shoot is left alone.
func (c *cycle) expectAsleep() {
	for _, id := range sortedIDs(guarded) {
		c.Expect(c.witness.At(id, c.apiStopped())).To(c.beOpen(id), "%s when the API server stopped", id)
	}
	c.expectCallInOrder()
	c.tellKyvernosLastWrites()
	door, err := listenForRequests(c.bench.Shoot.Host())
	c.Expect(err).NotTo(HaveOccurred())
	c.flow("reconcile asleep", map[string]bench.Step{}, c.gardenlet.Reconcile)
	for _, controller := range c.controllers {
		c.Expect(c.bench.Shoot.Connections(controller.Pid())).To(BeZero())
	}
	c.Expect(door.close()).To(BeZero(), "connections to the sleeping Shoot")
	asleep := c.extension.last()
	c.Expect(asleep.says()).To(Equal("True " + v1alpha1.ReasonAsleep))
	c.Expect(asleep.status).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Phase": Equal("Asleep"), "Mode": Equal(v1alpha1.ModeGuard), "Open": BeEquivalentTo(len(guarded)),
		"Restored": BeZero(), "RestoredByOwner": BeZero(),
	}))
}

// reaction is the time from the end of Kyverno's last process to the commit of the last of its hooks as open.
func (c *cycle) reaction() time.Duration {
	ended := c.bench.Kyverno.Ended()
	c.Expect(ended).To(BeTemporally(">", c.begun))
	var last time.Time
	for id := range kyvernoHooks {
		seen := c.witness.At(id, c.apiStopped())
		c.Expect(seen).To(c.beOpen(id))
		if seen.At.After(last) {
			last = seen.At
		}
	}
	reaction := last.Sub(ended)
	c.t.Logf("last hook of Kyverno open %s after the end of its last process", reaction)
	c.Expect(reaction).To(BeNumerically("<=", 3*time.Second))
	return reaction
}

// expectCallInOrder judges the lifecycle call of the hibernation: one list per kind, one state write, one patch per
// configuration, in parallel; all else comes after.
func (c *cycle) expectCallInOrder() {
	begin := c.sleep[bench.StepHibernateExtension].Begun
	asked := pick(c.shootEvents(bench.Filter{UserAgent: bench.ControllerAgent, Since: begin, Until: c.sleep[bench.StepWaitHibernatedExtension].Ended}),
		func(e auditv1.Event) bool { return e.ObjectRef != nil }) // without the question whether the Shoot is a seed
	opens := func(e auditv1.Event) bool { return e.Verb == "patch" && e.ObjectRef.APIGroup == admissionGroup }
	patches := pick(asked, opens)
	var patched []string
	for _, p := range patches {
		patched = append(patched, p.ObjectRef.Name)
		c.Expect(p.ResponseStatus.Code).To(BeEquivalentTo(200), p.ObjectRef.Name)
	}
	c.Expect(patched).To(ConsistOf("kyverno-resource-validating-webhook-cfg", "kyverno-verify-mutating-webhook-cfg", "in-house"))
	first, last := span(patches)

	before := pick(asked, func(e auditv1.Event) bool { return e.RequestReceivedTimestamp.Time.Before(last) && !opens(e) })
	var lists []string
	for _, e := range before {
		lists = append(lists, e.Verb+" "+e.ObjectRef.Resource)
		c.Expect(e.StageTimestamp.Time).To(BeTemporally("<", first))
	}
	c.Expect(lists).To(ConsistOf("list validatingwebhookconfigurations", "list mutatingwebhookconfigurations"), "before the last patch")

	after := pick(asked, func(e auditv1.Event) bool { return e.RequestReceivedTimestamp.Time.After(last) })
	c.Expect(after).To(ContainElement(HaveField("ObjectRef.Resource", "nodes")), "reads for verdicts")

	_, listed := span(before)
	states := c.statusWrites("state", begin, last)
	c.Expect(states).To(HaveLen(1), "state writes before the last patch")
	c.Expect(states[0].RequestReceivedTimestamp.Time).To(BeTemporally(">", listed))
	c.Expect(states[0].StageTimestamp.Time).To(BeTemporally("<", first))
	for _, field := range []string{"conditions", "providerStatus"} {
		c.Expect(c.statusWrites(field, begin, last)).To(BeEmpty(), field)
		c.Expect(c.statusWrites(field, last, c.apiStopped())).NotTo(BeEmpty(), field)
	}

	overlaps := 0
	for i, p := range patches[1:] { // in the order they came
		_, answered := span(patches[:i+1])
		if p.RequestReceivedTimestamp.Time.Before(answered) {
			overlaps++
		}
	}
	c.t.Logf("lifecycle call: all open %s after the Extension was deployed; patches took %s, %d of %d came before those before were answered",
		last.Sub(begin).Round(time.Millisecond), last.Sub(first).Round(time.Microsecond), overlaps, len(patches)-1)
	c.Expect(overlaps).To(BeNumerically(">", 0), "patches in parallel")
}

// statusWrites are our writes to the Extension's status that have a field.
func (c *cycle) statusWrites(field string, since, until time.Time) []auditv1.Event {
	events, err := c.bench.Seed.Audit().Writes(bench.Filter{
		User: bench.ControllerUser, Group: "extensions.gardener.cloud", Resource: "extensions/status", Since: since, Until: until,
	})
	c.Expect(err).NotTo(HaveOccurred())
	return pick(events, func(e auditv1.Event) bool {
		var body struct{ Status map[string]any }
		c.Expect(json.Unmarshal(e.RequestObject.Raw, &body)).To(Succeed())
		return body.Status[field] != nil
	})
}

// tellKyvernosLastWrites logs what Kyverno still writes after its pod was told to end.
func (c *cycle) tellKyvernosLastWrites() {
	evictions := pick(c.shootEvents(bench.Filter{Resource: "pods/eviction", Namespace: bench.KyvernoNamespace, Since: c.begun}),
		func(e auditv1.Event) bool {
			return e.ResponseStatus.Code < 300 && strings.HasPrefix(e.ObjectRef.Name, "kyverno-admission")
		})
	c.Expect(evictions).NotTo(BeEmpty())
	evicted, ended := evictions[len(evictions)-1].StageTimestamp.Time, c.bench.Kyverno.Ended()
	c.t.Logf("Kyverno ended %s after its eviction", ended.Sub(evicted).Round(time.Millisecond))
	writes, err := c.bench.Shoot.Audit().Writes(bench.Filter{User: kyvernoUser, Since: evicted, Until: ended.Add(time.Second)})
	c.Expect(err).NotTo(HaveOccurred())
	for _, w := range writes {
		c.t.Logf("Kyverno after its eviction: %s %s/%s %d, %s before its end", w.Verb, w.ObjectRef.Resource, w.ObjectRef.Name,
			w.ResponseStatus.Code, ended.Sub(w.RequestReceivedTimestamp.Time).Round(time.Millisecond))
	}
}

// expectAwake judges that all is as it was.
func (c *cycle) expectAwake() {
	after, err := c.bench.Snapshot(c.ctx)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(after.Leftovers()).To(BeEmpty())
	c.Expect(c.before.Diff(after)).To(BeEmpty())
	c.Expect(c.witness.Err()).NotTo(HaveOccurred())

	asked := c.shootEvents(bench.Filter{
		UserAgent: bench.ControllerAgent, Since: c.apiStopped(), Until: c.wake[bench.StepWaitKubeAPIServer].Begun,
	})
	c.Expect(asked).To(BeEmpty(), "requests to the sleeping Shoot")
	c.expectNoConnection()
	c.Expect(c.bench.WrongUses()).To(Succeed())
	c.expectPoliciesBite()
	c.expectTold()
	c.countWrites()
}

// expectNoConnection expects no watch and no connection of ours in an awake Shoot.
func (c *cycle) expectNoConnection() {
	c.Eventually(func(g Gomega) {
		for _, controller := range c.controllers {
			if pid := controller.Pid(); pid != 0 {
				g.Expect(c.bench.Shoot.Connections(pid)).To(BeZero())
			}
		}
		watches, err := c.bench.Shoot.Audit().OpenWatches(bench.Filter{UserAgent: bench.ControllerAgent})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(watches).To(BeEmpty())
	}).WithTimeout(2 * time.Second).WithPolling(50 * time.Millisecond).Should(Succeed())
}

func (c *cycle) expectPoliciesBite() {
	try := func(change func(*corev1.Pod)) error {
		return c.bench.Shoot.Client().Create(c.ctx, pod(change), client.DryRunAll)
	}
	c.Expect(try(func(*corev1.Pod) {})).To(Succeed())
	c.Expect(try(func(p *corev1.Pod) { p.Labels = nil })).To(MatchError(ContainSubstring("refused by policy require-team")))
	c.Expect(try(func(p *corev1.Pod) { p.Annotations = map[string]string{"forbidden": "yes"} })).
		To(MatchError(ContainSubstring("refused by policy all-kinds")))
	c.Expect(try(func(p *corev1.Pod) { p.Name = "unlucky" })).To(MatchError(ContainSubstring("no luck")))
}

// expectTold judges what operators and the Shoot's owner were told.
func (c *cycle) expectTold() {
	var said []string
	for _, l := range c.extension.since(c.begun) {
		said = append(said, l.says())
	}
	c.t.Logf("conditions: %s", strings.Join(slices.Compact(slices.Clone(said)), ", "))
	said = slices.DeleteFunc(said, func(s string) bool { return s == "Unknown "+v1alpha1.ReasonUnreachable }) // while the API server starts
	c.Expect(slices.Compact(said)).To(Equal([]string{
		"True WebhooksEnforced", "Progressing WebhooksOpening", "True ShootAsleep", "Progressing WebhooksFailOpen", "True WebhooksEnforced",
	}))
	last := c.extension.last()
	c.Expect(last.status.Open).To(BeZero())
	c.Expect(last.status.Restored + last.status.RestoredByOwner).To(BeEquivalentTo(len(guarded)))
	c.t.Logf("given back by the guard: %d, by the owner: %d", last.status.Restored, last.status.RestoredByOwner)

	report := &corev1.ConfigMap{}
	c.Expect(c.bench.Shoot.Client().Get(c.ctx, client.ObjectKey{Namespace: v1alpha1.ReportNamespace, Name: v1alpha1.ReportName}, report)).To(Succeed())
	told := v1alpha1.GuardStatus{}
	c.Expect(yaml.Unmarshal([]byte(report.Data[v1alpha1.ReportKey]), &told)).To(Succeed())
	c.Expect(told.Open).To(BeZero())
	c.Expect(told.Restored + told.RestoredByOwner).To(BeEquivalentTo(len(guarded)))
}

// countWrites counts our writes by configuration.
func (c *cycle) countWrites() {
	writes, err := c.bench.Shoot.Audit().Writes(bench.Filter{UserAgent: bench.ControllerAgent, Group: admissionGroup, Since: c.begun})
	c.Expect(err).NotTo(HaveOccurred())
	accepted, refused := map[string]int{}, map[string]int{}
	for _, w := range writes {
		if w.ResponseStatus.Code < 300 {
			accepted[w.ObjectRef.Name]++
		} else {
			refused[w.ObjectRef.Name]++
		}
	}
	c.t.Logf("writes of ours by configuration: accepted %v, refused %v", accepted, refused)
	c.Expect(accepted).To(HaveLen(len(guarded)))
	c.Expect(slices.Collect(maps.Values(accepted))).To(HaveEach(BeNumerically("<=", 4)), "two opens, one restore, one release")
}

func (c *cycle) shootEvents(f bench.Filter) []auditv1.Event {
	events, err := c.bench.Shoot.Audit().Events(f)
	c.Expect(err).NotTo(HaveOccurred())
	return events
}

func pick(events []auditv1.Event, wanted func(auditv1.Event) bool) []auditv1.Event {
	var picked []auditv1.Event
	for _, e := range events {
		if wanted(e) {
			picked = append(picked, e)
		}
	}
	return picked
}

// span is from when the first of the requests was received to when the last was answered.
func span(events []auditv1.Event) (first, last time.Time) {
	for _, e := range events {
		if received := e.RequestReceivedTimestamp.Time; first.IsZero() || received.Before(first) {
			first = received
		}
		if answered := e.StageTimestamp.Time; answered.After(last) {
			last = answered
		}
	}
	return first, last
}
