// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

const header = `{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardConfig"`

func TestDecodeConfig(t *testing.T) {
	defaults := &guardv1alpha1.GuardConfig{}
	guardv1alpha1.SetObjectDefaults_GuardConfig(defaults)
	defaults.SetGroupVersionKind(guardv1alpha1.SchemeGroupVersion.WithKind("GuardConfig"))

	for name, raw := range map[string]*runtime.RawExtension{
		"no providerConfig":             nil,
		"an empty providerConfig":       {},
		"a providerConfig without text": {Raw: []byte{}},
		"a null providerConfig":         {Raw: []byte("null")},
		"nothing but the kind":          {Raw: []byte(header + "}")},
		"a typed object":                {Object: &guardv1alpha1.GuardConfig{TypeMeta: defaults.TypeMeta}},
	} {
		t.Run(name+" means all defaults", func(t *testing.T) {
			g := NewWithT(t)
			config, err := codec.DecodeConfig(raw)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config).To(Equal(defaults))
		})
	}

	t.Run("what is set is decoded, the rest gets defaults", func(t *testing.T) {
		g := NewWithT(t)
		config, err := codec.DecodeConfig(&runtime.RawExtension{Raw: []byte(header + `,"mode":"Report","wakingUp":{"deadline":"1h30m"},
			"webhooks":[{"configuration":"a","action":"Leave"}]}`)})
		g.Expect(err).NotTo(HaveOccurred())
		want := defaults.DeepCopy()
		want.Mode = new(guardv1alpha1.ModeReport)
		want.WakingUp.Deadline.Duration = 90 * time.Minute
		want.Webhooks = []guardv1alpha1.WebhookRule{{Configuration: "a", Action: guardv1alpha1.ActionLeave}}
		g.Expect(config).To(Equal(want))
	})

	for name, tc := range map[string]struct{ raw, message string }{
		"no object":                       {`5`, "GuardConfig"},
		"no JSON":                         {`{"kind":`, "GuardConfig"},
		"no kind":                         {`{}`, `set apiVersion to "hibernation-guard.extensions.gardener.cloud/v1alpha1" and kind to "GuardConfig" (found none and none)`},
		"another kind":                    {`{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardState"}`, `kind to "GuardConfig" (found "hibernation-guard.extensions.gardener.cloud/v1alpha1" and "GuardState")`},
		"another version":                 {`{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1","kind":"GuardConfig"}`, "set apiVersion"},
		"a kind that is none":             {`{"apiVersion":1,"kind":{}}`, "set apiVersion"},
		"an unknown field":                {header + `,"wakingUp":{"deadlin":"1m"}}`, "wakingUp.deadlin: Forbidden: there is no such field"},
		"an unknown list item":            {header + `,"webhooks":[{"hook":"a","action":"Leave"},{"hok":"b","action":"Leave"}]}`, "webhooks[1].hok: Forbidden: there is no such field"},
		"a field in other case":           {header + `,"Mode":"Report"}`, "Mode: Forbidden: there is no such field"},
		"a field twice":                   {header + `,"mode":"Report","mode":"Guard"}`, `duplicate field "mode"`},
		"a string for a number":           {header + `,"openTimeouts":{"mutating":"1"}}`, "openTimeouts.mutating"},
		"a fraction":                      {header + `,"openTimeouts":{"mutating":1.5}}`, "openTimeouts.mutating"},
		"a huge number":                   {header + `,"openTimeouts":{"validating":99999999999}}`, "openTimeouts.validating"},
		"a list for an object":            {header + `,"wakingUp":[]}`, "wakingUp"},
		"a number for a string":           {header + `,"mode":1}`, "mode"},
		"a bad stabilization":             {header + `,"stabilization":"soon"}`, `stabilization: Invalid value: "soon": write a number and a unit`},
		"a bad waking-up deadline":        {header + `,"wakingUp":{"deadline":"1x"}}`, "wakingUp.deadline: Invalid value"},
		"a bad going-down deadline":       {header + `,"goingDown":{"deadline":""}}`, "goingDown.deadline: Invalid value"},
		"a number for a duration":         {header + `,"goingDown":{"deadline":60}}`, "goingDown.deadline"},
		"a value out of range":            {header + `,"openTimeouts":{"mutating":31}}`, "openTimeouts.mutating: Invalid value: 31"},
		"a value that is not one of many": {header + `,"mode":"Off"}`, `mode: Unsupported value: "Off"`},
		"a rule that would match all":     {header + `,"webhooks":[{"action":"Leave"}]}`, "webhooks[0]"},
		"several values that are no good": {header + `,"mode":"Off","stabilization":"11m"}`, "stabilization: Invalid value"},
	} {
		t.Run(name+" is an error that says where", func(t *testing.T) {
			g := NewWithT(t)
			config, err := codec.DecodeConfig(&runtime.RawExtension{Raw: []byte(tc.raw)})
			g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(config).To(BeNil())
		})
	}
}

func TestDecodeControllerConfiguration(t *testing.T) {
	const header = "apiVersion: config.hibernation-guard.extensions.gardener.cloud/v1alpha1\nkind: ControllerConfiguration\n"
	for name, data := range map[string]string{"an empty file": "", "only a comment": "# nothing\n", "nothing but the kind": header} {
		t.Run(name+" means all defaults", func(t *testing.T) {
			g := NewWithT(t)
			config, err := codec.DecodeControllerConfiguration([]byte(data))
			g.Expect(err).NotTo(HaveOccurred())
			want := &configv1alpha1.ControllerConfiguration{}
			want.SetGroupVersionKind(configv1alpha1.SchemeGroupVersion.WithKind("ControllerConfiguration"))
			configv1alpha1.SetObjectDefaults_ControllerConfiguration(want)
			g.Expect(config).To(Equal(want))
		})
	}
	t.Run("what is set is decoded", func(t *testing.T) {
		g := NewWithT(t)
		config, err := codec.DecodeControllerConfiguration([]byte(header + "care:\n  syncPeriod: 1m\nshootClient:\n  qps: 7.5\n"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Care.SyncPeriod.Duration).To(Equal(time.Minute))
		g.Expect(*config.ShootClient.QPS).To(Equal(float32(7.5)))
		g.Expect(*config.ShootClient.Burst).To(Equal(int32(100)))
	})
	for name, tc := range map[string]struct{ data, message string }{
		"another kind":         {"apiVersion: v1\nkind: ConfigMap\n", `kind to "ControllerConfiguration"`},
		"an unknown field":     {header + "care:\n  period: 1m\n", "care.period: Forbidden: there is no such field"},
		"a bad period":         {header + "care:\n  syncPeriod: often\n", "care.syncPeriod: Invalid value"},
		"a bad timeout":        {header + "shootClient:\n  timeout: 5\n", "shootClient.timeout"},
		"an unparsable time":   {header + "shootClient:\n  timeout: 5x\n", "shootClient.timeout: Invalid value"},
		"a value out of range": {header + "shootClient:\n  timeout: 16s\n", "shootClient.timeout: Invalid value"},
		"no YAML":              {"\tcare", "ControllerConfiguration"},
	} {
		t.Run(name+" is an error that says where", func(t *testing.T) {
			g := NewWithT(t)
			config, err := codec.DecodeControllerConfiguration([]byte(tc.data))
			g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(config).To(BeNil())
		})
	}
}
