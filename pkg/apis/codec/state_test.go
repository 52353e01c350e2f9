// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func fullState() *v1alpha1.GuardState {
	at := metav1.NewTime(time.Date(2026, 8, 24, 12, 0, 0, 0, time.UTC).Local())
	record := v1alpha1.HookRecord{
		Kind: "ValidatingWebhookConfiguration", Configuration: "a", UID: "1", Hook: "x.example.com",
		Backend:      &v1alpha1.Backend{Namespace: "policy", Name: "hook", Port: 443},
		Original:     v1alpha1.Original{FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: 10},
		FormerOwners: []v1alpha1.FieldOwner{{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, Fields: []string{"failurePolicy"}}},
		Why:          "NotReady", Verdict: "NotReady", VerdictReason: "NoReadyEndpoints",
		Opened: &at, Returned: &at, ReturnedBy: v1alpha1.ReturnedByGuard, Gone: true, Reopened: 2,
	}
	other := record
	other.Hook = "y.example.com"
	return &v1alpha1.GuardState{
		TypeMeta: metav1.TypeMeta{APIVersion: "hibernation-guard.extensions.gardener.cloud/v1alpha1", Kind: "GuardState"},
		Revision: v1alpha1.StateRevision,
		Cycle: &v1alpha1.Cycle{Direction: v1alpha1.DirectionWakeUp, Begun: at, FirstReadyNode: &at,
			Attempts: []string{"2026-08-24T12:00:00.000000001Z"}, FirstHeldBack: &at, LetGo: true, HoldOnly: true, Ended: &at},
		Hooks: map[string]v1alpha1.HookRecord{
			v1alpha1.HookKey(record.Kind, record.Configuration, record.UID, record.Hook): record,
			v1alpha1.HookKey(other.Kind, other.Configuration, other.UID, other.Hook):     other,
		},
		Claims: map[string]v1alpha1.Claim{
			v1alpha1.ClaimKey("ConfigMap", "kyverno", "kyverno", "2"): {
				Kind: "ConfigMap", Namespace: "kyverno", Name: "kyverno", UID: "2", Since: at, Pending: true, Removed: 1, KeyAdded: true},
		},
		LastGoodConfig: &runtime.RawExtension{Raw: []byte(`{"mode":"Report"}`)},
	}
}

// change gives the encoded full state after a change of its JSON.
func change(t *testing.T, change func(state map[string]any)) *runtime.RawExtension {
	t.Helper()
	g := NewWithT(t)
	raw, err := codec.EncodeState(fullState())
	g.Expect(err).NotTo(HaveOccurred())
	var state map[string]any
	g.Expect(json.Unmarshal(raw.Raw, &state)).To(Succeed())
	change(state)
	data, err := json.Marshal(state)
	g.Expect(err).NotTo(HaveOccurred())
	return &runtime.RawExtension{Raw: data}
}

func hook(state map[string]any) map[string]any {
	return state["hooks"].(map[string]any)["ValidatingWebhookConfiguration/a/1/x.example.com"].(map[string]any)
}

func TestDecodeState(t *testing.T) {
	for name, raw := range map[string]*runtime.RawExtension{"no state": nil, "an empty state": {}, "a null state": {Raw: []byte("null")}} {
		t.Run(name+" is a state without hooks", func(t *testing.T) {
			g := NewWithT(t)
			state, newer, err := codec.DecodeState(raw)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(newer).To(BeFalse())
			g.Expect(state.Revision).To(Equal(v1alpha1.StateRevision))
			g.Expect(state.Cycle).To(BeNil())
			g.Expect(state.Hooks).To(BeEmpty())
		})
	}

	t.Run("what was encoded is decoded without loss", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := codec.EncodeState(fullState())
		g.Expect(err).NotTo(HaveOccurred())
		state, newer, err := codec.DecodeState(raw)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(newer).To(BeFalse())
		g.Expect(state).To(Equal(fullState()))
	})

	t.Run("unknown fields are ignored", func(t *testing.T) {
		g := NewWithT(t)
		state, newer, err := codec.DecodeState(change(t, func(state map[string]any) {
			state["later"] = []any{"a"}
			hook(state)["colour"] = "red"
		}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(newer).To(BeFalse())
		g.Expect(state).To(Equal(fullState()))
	})

	for name, tc := range map[string]func(map[string]any){
		"a higher revision": func(state map[string]any) { state["revision"] = v1alpha1.StateRevision + 1 },
		"another version":   func(state map[string]any) { state["apiVersion"] = "hibernation-guard.extensions.gardener.cloud/v1" },
	} {
		t.Run(name+" is newer, and what is understood is decoded", func(t *testing.T) {
			g := NewWithT(t)
			state, newer, err := codec.DecodeState(change(t, tc))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(newer).To(BeTrue())
			g.Expect(state.Hooks).To(Equal(fullState().Hooks))
			g.Expect(state.Cycle).To(Equal(fullState().Cycle))
		})
	}
}

func TestDecodeStateDamaged(t *testing.T) {
	for name, tc := range map[string]struct{ data, message string }{
		"something that is no JSON":   {`{"kind"`, "failed to decode GuardState"},
		"something that is no object": {`[]`, "failed to decode GuardState"},
		"an object without kind":      {`{}`, "is of the kind"},
		"another kind":                {`{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardConfig","revision":1}`, "Kind=GuardConfig"},
		"a state of another group":    {`{"apiVersion":"example.com/v1alpha1","kind":"GuardState","revision":1}`, "example.com"},
		"hooks that are a list":       {`{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardState","revision":1,"hooks":[]}`, "hooks"},
	} {
		t.Run(name+" is an error and never taken for an empty record", func(t *testing.T) {
			g := NewWithT(t)
			state, _, err := codec.DecodeState(&runtime.RawExtension{Raw: []byte(tc.data)})
			g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(state).NotTo(BeNil())
		})
	}

	for name, tc := range map[string]struct {
		change  func(map[string]any)
		message string
		hooks   int
	}{
		"a timeout that is no number": {func(state map[string]any) { hook(state)["original"].(map[string]any)["timeoutSeconds"] = "long" },
			`hooks["ValidatingWebhookConfiguration/a/1/x.example.com"]`, 1},
		"a time that is none": {func(state map[string]any) { hook(state)["opened"] = "then" }, "x.example.com", 1},
		"an empty hook": {func(state map[string]any) {
			state["hooks"].(map[string]any)["ValidatingWebhookConfiguration/a/1/x.example.com"] = nil
		}, "the record is empty", 1},
		"a cycle that is none":    {func(state map[string]any) { state["cycle"] = "Hibernate" }, "cycle", 2},
		"a missing revision":      {func(state map[string]any) { delete(state, "revision") }, "revision", 2},
		"a revision that is none": {func(state map[string]any) { state["revision"] = "one" }, "revision", 2},
		"a negative revision":     {func(state map[string]any) { state["revision"] = -1 }, "revision", 2},
	} {
		t.Run(name+" is an error that names it, and the hooks that are whole are decoded", func(t *testing.T) {
			g := NewWithT(t)
			state, _, err := codec.DecodeState(change(t, tc.change))
			g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(state.Hooks).To(HaveLen(tc.hooks))
			for key, record := range state.Hooks {
				g.Expect(record).To(Equal(fullState().Hooks[key]))
			}
		})
	}
}

func TestEncodeState(t *testing.T) {
	t.Run("the kind and this binary's revision are written, the argument stays as it is", func(t *testing.T) {
		g := NewWithT(t)
		state := &v1alpha1.GuardState{}
		raw, err := codec.EncodeState(state)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(raw.Raw).To(MatchJSON(`{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardState","revision":2}`))
		g.Expect(*state).To(Equal(v1alpha1.GuardState{}))
	})
	t.Run("the same state gives the same bytes", func(t *testing.T) {
		g := NewWithT(t)
		want, err := codec.EncodeState(fullState())
		g.Expect(err).NotTo(HaveOccurred())
		for range 20 {
			g.Expect(codec.EncodeState(fullState())).To(Equal(want))
		}
	})
	t.Run("a record of a later binary is not overwritten", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := codec.EncodeState(&v1alpha1.GuardState{Revision: v1alpha1.StateRevision + 1})
		g.Expect(err).To(HaveOccurred())
		g.Expect(raw).To(BeNil())
	})
}

// Nothing a cluster can hold makes the decoders panic, and what they give without an error is complete.
func FuzzDecode(f *testing.F) {
	raw, err := codec.EncodeState(fullState())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw.Raw)
	f.Add([]byte(header + "}"))
	f.Add([]byte(header + `,"stabilization":"1m"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if state, _, err := codec.DecodeState(&runtime.RawExtension{Raw: data}); state == nil || (err == nil && state.Revision < 1) {
			t.Fatalf("state %v, error %v", state, err)
		}
		if config, err := codec.DecodeConfig(&runtime.RawExtension{Raw: data}); err == nil && (config.Mode == nil || config.WakingUp.Deadline == nil) {
			t.Fatalf("config %v", config)
		}
	})
}
