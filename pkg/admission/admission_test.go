// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

const header = `"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardConfig"`

func with(fields string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "other"}, {Type: v1alpha1.ExtensionType}}
	if fields != "" {
		shoot.Spec.Extensions[1].ProviderConfig = &runtime.RawExtension{Raw: []byte(fields)}
	}
	return shoot
}

func TestValidate(t *testing.T) {
	const faulty = `{` + header + `,"mode":"Off"}`
	disabled, deleting := with(faulty), with(faulty)
	disabled.Spec.Extensions[1].Disabled = new(true)
	deleting.DeletionTimestamp = &metav1.Time{}

	refused := func(parts ...string) gomegatypes.GomegaMatcher {
		matchers := []gomegatypes.GomegaMatcher{HaveOccurred()}
		for _, part := range parts {
			matchers = append(matchers, MatchError(ContainSubstring(part)))
		}
		return And(matchers...)
	}
	const at = "spec.extensions[1].providerConfig"
	for name, tc := range map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       gomegatypes.GomegaMatcher
	}{
		"a Shoot without the extension is no business of ours": {&gardencorev1beta1.Shoot{}, nil, Succeed()},
		"no config means all defaults":                         {with(""), nil, Succeed()},
		"a config that says the defaults is good":              {with(`{` + header + `,"mode":"Guard","hibernationConstraint":"Lift"}`), nil, Succeed()},
		"a disabled extension may keep its faults":             {disabled, nil, Succeed()},
		"a Shoot in deletion may keep its faults":              {deleting, nil, Succeed()},
		"a fault is named with its path":                       {with(faulty), nil, refused(at+".mode", `"Off"`, `"Guard", "Report"`)},
		"no kind and version are named":                        {with(`{"mode":"Guard"}`), nil, refused(at+".apiVersion", at+".kind", `set it to "GuardConfig"`)},
		"an unknown field is named":                            {with(`{` + header + `,"wakingUp":{"dealine":"1h"}}`), nil, refused(at+".wakingUp.dealine", "there is no such field")},
		"a duration without unit is named":                     {with(`{` + header + `,"stabilization":"20"}`), nil, refused(at+".stabilization", "a number and a unit")},
		"a value of the wrong type is named":                   {with(`{` + header + `,"openTimeouts":{"mutating":"1s"}}`), nil, refused(at+".openTimeouts.mutating", `"1s": write a whole number`)},
		"each value of the wrong type is named, with its place in a list": {with(`{` + header + `,"openTimeouts":{"mutating":"1","validating":[]},"goingDown":{"deadline":60},
			"webhooks":[{"hook":"a","action":"Leave"},{"hook":"b","action":5},{"hook":7,"action":"Guard"}]}`), nil,
			refused(at+".openTimeouts.mutating", at+".openTimeouts.validating", at+".goingDown.deadline", at+".webhooks[1].action", at+".webhooks[2].hook")},
		"a field that is there twice is refused":                    {with(`{` + header + `,"mode":"Guard","mode":"Report"}`), nil, refused(at, `write each field once`, `"mode"`)},
		"the rest is checked although kind and version are missing": {with(`{"mode":"Off"}`), nil, refused(at+".kind", at+".mode")},
		"something that is no object is refused":                    {with(`["Guard"]`), nil, refused(at, "GuardConfig")},
		"all faults are told at once": {with(`{` + header + `,"mode":"Off","stabilization":"20","nonsense":1,"openTimeouts":{"mutating":99}}`), nil,
			refused(at+".mode", at+".stabilization", at+".nonsense", at+".openTimeouts.mutating")},
		"a rule that contradicts an earlier one is refused": {with(`{` + header + `,"webhooks":[{"namespace":"a","action":"Leave"},{"namespace":"a","hook":"b","action":"Guard"}]}`), nil,
			refused(at+".webhooks[1]", "webhooks[0] says Leave", "Guard has no effect")},
		"a rule that says the same as an earlier one is refused": {with(`{` + header + `,"webhooks":[{"hook":"b","action":"Leave"},{"hook":"b","action":"Leave"}]}`), nil,
			refused(at+".webhooks[1]", "has no effect")},
		"a deadline that is over before a backend can be ready for long enough is refused": {with(`{` + header + `,"stabilization":"5m","wakingUp":{"deadline":"5m"}}`), nil,
			refused(at+".stabilization", "wakingUp.deadline")},
		"a narrow rule before a wide one is good": {with(`{` + header + `,"webhooks":[{"namespace":"a","hook":"b","action":"Guard"},{"namespace":"a","action":"Leave"}]}`), nil, Succeed()},

		"a fault that was there before is let through":           {with(faulty), with(`{"kind":"GuardConfig", "mode": "Off",` + header[:len(header)-len(`,"kind":"GuardConfig"`)] + `}`), Succeed()},
		"a field that is there twice is no unchanged one":        {with(`{` + header + `,"mode":"Report","mode":"Guard"}`), with(`{` + header + `,"mode":"Guard"}`), refused(at)},
		"a fault that is new is refused":                         {with(faulty), with(""), refused(at + ".mode")},
		"a fault that was there while disabled is refused later": {with(faulty), disabled, refused(at + ".mode")},
	} {
		t.Run(name, func(t *testing.T) {
			var old client.Object
			if tc.old != nil {
				old = tc.old
			}
			NewWithT(t).Expect(shootValidator{}.Validate(t.Context(), tc.shoot, old)).To(tc.want)
		})
	}
}

func TestFaultsAreNamedOnce(t *testing.T) {
	g := NewWithT(t)
	shoot := with(`{` + header + `,"webhooks":[{"hook":7,"action":"Guard"},{"hook":"b","action":5},{"hook":"b","action":"Leave"}]}`)
	err := shootValidator{}.Validate(t.Context(), shoot, nil)
	g.Expect(err).To(MatchError(And(ContainSubstring("webhooks[0].hook: Invalid value: 7: write text"), ContainSubstring("webhooks[1].action: Invalid value: 5: write text"))))
	var all utilerrors.Aggregate
	g.Expect(errors.As(err, &all)).To(BeTrue())
	g.Expect(all.Errors()).To(HaveLen(2), "what had to be left out is not called missing, too")
}
