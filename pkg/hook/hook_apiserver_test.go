// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// TestPatchesAgainstAPIServer proves on a real API server what the patches rely on.
func TestPatchesAgainstAPIServer(t *testing.T) {
	client := startAPIServer(t)
	for _, kind := range []hook.Kind{hook.Validating, hook.Mutating} {
		t.Run(string(kind), func(t *testing.T) {
			newServer := func(t *testing.T) *server { return &server{WithT: NewWithT(t), t: t, client: client, kind: kind} }
			t.Run("a full cycle changes the two fields alone and hands them back", func(t *testing.T) { fullCycle(newServer(t)) })
			t.Run("a field that helm leaves out after a full cycle has the API's default", func(t *testing.T) { omittedAfterCycle(newServer(t)) })
			t.Run("hooks are released one after the other", func(t *testing.T) { releaseInTwoSteps(newServer(t)) })
			t.Run("an open patch is refused for a changed or another object", func(t *testing.T) { openRefused(newServer(t)) })
			t.Run("a restore patch is refused for a changed value or another object", func(t *testing.T) { restoreRefused(newServer(t)) })
			t.Run("several entries of the guard are released at once", func(t *testing.T) { releaseSeveralEntries(newServer(t)) })
			t.Run("an object without managedFields gets no entry", func(t *testing.T) { withoutManagedFields(newServer(t)) })
			t.Run("the annotation limit is the API server's", func(t *testing.T) { annotationLimit(newServer(t)) })
			t.Run("a hundred hooks are opened by one patch", func(t *testing.T) { hundredHooks(newServer(t)) })
		})
	}
}

func fullCycle(s *server) {
	s.helmApplies(timeout{"a.example.com", "Fail", 15}, timeout{"b.example.com", "Ignore", 2})
	before, beforeObject := s.read()
	owners := before.Owners("a.example.com")
	s.Expect(owners).To(Equal([]v1alpha1.FieldOwner{{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy", "timeoutSeconds"}}}))

	s.succeeds(s.open(before, "a.example.com"))
	open, openObject := s.read()
	s.Expect(open.Hooks[0].Values).To(Equal(values(ignore, 1)))
	originals, err := open.Originals()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(originals.Hooks).To(Equal(originalsOf{"a.example.com": {FailurePolicy: fail, TimeoutSeconds: 15}}))
	policy, timeoutSeconds := open.Ours("a.example.com")
	s.Expect([]bool{policy, timeoutSeconds}).To(Equal([]bool{true, true}))
	s.Expect(open.Owners("a.example.com")).To(BeEmpty())
	s.Expect(open.Owners("b.example.com")).To(Equal(owners), "the other hook is not touched")
	s.Expect(withoutGuarded(openObject)).To(Equal(withoutGuarded(beforeObject)))

	s.Expect(s.helm(timeout{"a.example.com", "Fail", 20})).To(MatchError(apierrors.IsConflict, "IsConflict"), "while the hook is open")
	s.succeeds(s.send("ca-injector", hook.Patch{Type: types.StrategicMergePatchType, Data: []byte(
		`{"webhooks":[{"name":"a.example.com","clientConfig":{"caBundle":"bmV3"}},{"name":"b.example.com","clientConfig":{"caBundle":"bmV3"}}]}`)}))

	s.succeeds(s.restore(open, "a.example.com", before, nil)) // from what was read before the caBundle changed
	restored, _ := s.read()
	s.Expect(restored.Hooks[0].Values).To(Equal(values(fail, 15)))
	s.Expect(restored.Hooks[0].CABundle).To(Equal([]byte("new")))
	s.Expect(restored.Annotations).NotTo(HaveKey(v1alpha1.OriginalsAnnotation))
	s.Expect(restored.HasOurEntry()).To(BeTrue())
	s.Expect(s.helm(timeout{"a.example.com", "Fail", 20})).To(MatchError(apierrors.IsConflict, "IsConflict"), "before the release")

	s.succeeds(s.release(restored, map[string][]v1alpha1.FieldOwner{"a.example.com": owners}))
	released, releasedObject := s.read()
	s.Expect(released.HasOurEntry()).To(BeFalse())
	s.Expect(entryOf(releasedObject, "helm")).To(Equal(entryOf(beforeObject, "helm")))
	_, again, err := hook.ReleasePatch(released, map[string][]v1alpha1.FieldOwner{"a.example.com": owners})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(again).To(BeFalse())

	s.Expect(s.helm(timeout{"a.example.com", "Ignore", 20}, timeout{"b.example.com", "Ignore", 2})).To(Succeed(), "helm's next apply is no conflict")
	changed, _ := s.read()
	s.Expect(changed.Hooks[0].Values).To(Equal(values(ignore, 20)))
}

func omittedAfterCycle(s *server) {
	s.helmApplies(timeout{"a.example.com", "Ignore", 15})
	before, _ := s.read()
	s.cycle(before, map[string][]v1alpha1.FieldOwner{"a.example.com": before.Owners("a.example.com")})
	s.Expect(s.helm(timeout{"a.example.com", "", 0})).To(Succeed())
	after, _ := s.read()
	s.Expect(after.Hooks[0].Values).To(Equal(values(fail, 10)))
}

func releaseInTwoSteps(s *server) {
	const a, b = "a.example.com", "b.example.com"
	s.helmApplies(timeout{a, "Fail", 15}, timeout{b, "Fail", 20})
	before, beforeObject := s.read()
	s.succeeds(s.open(before, a, b))

	open, _ := s.read()
	s.succeeds(s.restore(open, a, before, originalsOf{b: before.Hooks[1].Values.Original()}))
	half, _ := s.read()
	originals, err := half.Originals()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(originals.Hooks).To(HaveLen(1))
	s.succeeds(s.release(half, map[string][]v1alpha1.FieldOwner{a: before.Owners(a)}))
	half, _ = s.read()
	s.Expect(half.Owners(a)).To(Equal(before.Owners(a)))
	s.Expect(half.Owners(b)).To(BeEmpty())
	policy, timeoutSeconds := half.Ours(b)
	s.Expect([]bool{policy, timeoutSeconds}).To(Equal([]bool{true, true}), "the hook that is still open stays ours")

	s.succeeds(s.restore(half, b, before, nil))
	restored, _ := s.read()
	s.succeeds(s.release(restored, map[string][]v1alpha1.FieldOwner{b: before.Owners(b)}))
	released, releasedObject := s.read()
	s.Expect(released.HasOurEntry()).To(BeFalse())
	s.Expect(entryOf(releasedObject, "helm")).To(Equal(entryOf(beforeObject, "helm")))
	s.Expect(withoutGuarded(releasedObject)).To(Equal(withoutGuarded(beforeObject)))
}

func openRefused(s *server) {
	s.helmApplies(timeout{"a.example.com", "Fail", 15})
	before, _ := s.read()
	s.Expect(s.helm(timeout{"a.example.com", "Fail", 16})).To(Succeed())
	current, object := s.read()

	s.Expect(s.open(before, "a.example.com")).To(MatchError(apierrors.IsConflict, "IsConflict"), "an old resource version")
	recreated := current
	recreated.UID = "another"
	s.Expect(s.open(recreated, "a.example.com")).To(MatchError(apierrors.IsInvalid, "IsInvalid"), "another uid")
	renamed := current
	renamed.Hooks = []hook.Hook{{Name: "gone.example.com", Values: values(fail, 15)}}
	s.Expect(s.open(renamed, "gone.example.com")).To(MatchError(apierrors.IsInvalid, "IsInvalid"), "an entry that is not there")
	_, after := s.read()
	s.Expect(after).To(Equal(object), "nothing of a refused patch is stored")
}

func restoreRefused(s *server) {
	s.helmApplies(timeout{"a.example.com", "Fail", 15})
	before, _ := s.read()
	s.succeeds(s.open(before, "a.example.com"))
	open, _ := s.read()

	recreated := open
	recreated.UID = "another"
	s.Expect(s.restore(recreated, "a.example.com", before, nil)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	s.succeeds(s.send("admin", hook.Patch{Type: types.StrategicMergePatchType, Data: []byte(
		`{"webhooks":[{"name":"a.example.com","timeoutSeconds":7}]}`)}))
	_, object := s.read()
	s.Expect(s.restore(open, "a.example.com", before, nil)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	_, after := s.read()
	s.Expect(after).To(Equal(object))

	// Per field: the admin's timeout stays, and is not handed to helm either.
	changed, _ := s.read()
	p, err := hook.RestorePatch(changed, valuesOf{"a.example.com": values(ignore, 7)}, valuesOf{"a.example.com": values(fail, 7)}, nil)
	s.Expect(err).NotTo(HaveOccurred())
	s.succeeds(s.send(v1alpha1.FieldManager, p))
	restored, _ := s.read()
	s.succeeds(s.release(restored, map[string][]v1alpha1.FieldOwner{"a.example.com": before.Owners("a.example.com")}))
	released, _ := s.read()
	s.Expect(released.Hooks[0].Values).To(Equal(values(fail, 7)))
	s.Expect(released.HasOurEntry()).To(BeFalse())
	s.Expect(released.Owners("a.example.com")).To(ConsistOf(
		v1alpha1.FieldOwner{Manager: "helm", Operation: apply, Fields: []string{"failurePolicy"}},
		v1alpha1.FieldOwner{Manager: "admin", Operation: update, Fields: []string{"timeoutSeconds"}},
	))
}

func releaseSeveralEntries(s *server) {
	s.helmApplies(timeout{"a.example.com", "Fail", 15})
	before, beforeObject := s.read()
	s.succeeds(s.open(before, "a.example.com"))
	s.succeeds(s.send(v1alpha1.FieldManager, hook.Patch{Type: types.ApplyPatchType, Data: fmt.Appendf(nil,
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":%q,"webhooks":[{"name":"a.example.com","failurePolicy":"Ignore","timeoutSeconds":1}]}`, s.kind)}))
	open, _ := s.read()
	s.Expect(open.ManagedFields).To(HaveLen(3))
	s.succeeds(s.restore(open, "a.example.com", before, nil))
	restored, _ := s.read()
	s.succeeds(s.release(restored, map[string][]v1alpha1.FieldOwner{"a.example.com": before.Owners("a.example.com")}))
	released, releasedObject := s.read()
	s.Expect(released.ManagedFields).To(HaveLen(1))
	s.Expect(entryOf(releasedObject, "helm")).To(Equal(entryOf(beforeObject, "helm")))
}

func withoutManagedFields(s *server) {
	s.helmApplies(timeout{"a.example.com", "Fail", 15})
	s.succeeds(s.send("old", hook.Patch{Type: types.JSONPatchType, Data: []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)}))
	before, _ := s.read()
	s.Expect(before.ManagedFields).To(BeEmpty())
	s.succeeds(s.open(before, "a.example.com"))
	open, _ := s.read()
	s.Expect(open.HasOurEntry()).To(BeFalse())
	s.Expect(open.Hooks[0].Values).To(Equal(values(ignore, 1)))
	s.succeeds(s.restore(open, "a.example.com", before, nil))
	restored, _ := s.read()
	_, ok, err := hook.ReleasePatch(restored, map[string][]v1alpha1.FieldOwner{"a.example.com": nil})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(ok).To(BeFalse())
}

func annotationLimit(s *server) {
	s.helmApplies(timeout{"a.example.com", "Fail", 15})
	s.succeeds(s.send("big", annotate(strings.Repeat("v", validation.TotalAnnotationSizeLimitB-2000))))
	before, _ := s.read()
	s.succeeds(s.open(before, "a.example.com"))
	open, _ := s.read()
	s.Expect(open.Annotations).To(HaveKey(v1alpha1.OriginalsAnnotation))
	s.succeeds(s.restore(open, "a.example.com", before, nil))

	// Fill it up to the last byte: the annotation does not fit, the hook is opened all the same.
	s.succeeds(s.send("big", annotate(strings.Repeat("v", validation.TotalAnnotationSizeLimitB-1))))
	full, _ := s.read()
	s.succeeds(s.open(full, "a.example.com"))
	open, _ = s.read()
	s.Expect(open.Annotations).NotTo(HaveKey(v1alpha1.OriginalsAnnotation))
	s.Expect(open.Hooks[0].Values).To(Equal(values(ignore, 1)))
	s.Expect(s.send("big", annotate(strings.Repeat("v", validation.TotalAnnotationSizeLimitB)))).To(MatchError(apierrors.IsInvalid, "IsInvalid"), "one byte more")
	s.succeeds(s.restore(open, "a.example.com", full, nil))
}

func annotate(value string) hook.Patch {
	data, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"k": value}}})
	return hook.Patch{Type: types.MergePatchType, Data: data}
}

func hundredHooks(s *server) {
	var hooks []timeout
	var names []string
	owners := map[string][]v1alpha1.FieldOwner{}
	for i := range 100 {
		name := fmt.Sprintf("h%d.example.com", i)
		hooks, names = append(hooks, timeout{name, "Fail", int32(1 + i%30)}), append(names, name)
	}
	s.helmApplies(hooks...)
	before, beforeObject := s.read()
	for _, name := range names {
		owners[name] = before.Owners(name)
	}
	s.cycle(before, owners)
	_, afterObject := s.read()
	s.Expect(entryOf(afterObject, "helm")).To(Equal(entryOf(beforeObject, "helm")))
	s.Expect(withoutGuarded(afterObject)).To(Equal(withoutGuarded(beforeObject)))
	s.Expect(afterObject.Object["webhooks"]).To(Equal(beforeObject.Object["webhooks"]))
}
