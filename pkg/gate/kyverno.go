// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"fmt"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// kyvernoKey is the key of what there is to note about Kyverno as a whole.
const kyvernoKey = "kyverno"

// byHand is what a person does where the guard does not.
const byHand = "Set it yourself with Kyverno's Helm value config.webhookLabels (" + v1alpha1.ClaimLabel + ": " + v1alpha1.ClaimValue + ")."

// kyverno decides on Kyverno's configurations. Kyverno takes foreign labels off at once; those that its ConfigMap names it puts on
// all of them itself.
func (d *decision) kyverno(all []assessed) {
	namespace, labelledAll, blocked := "", true, false
	for _, a := range all {
		if len(a.flagged) == 0 {
			continue
		}
		labelledAll = labelledAll && labelled(a.Configuration)
		blocked = blocked || len(a.blocked) > 0
		if s := a.Configuration.Hooks[a.flagged[0]].Service; s != nil && namespace == "" {
			namespace = s.Namespace
		}
	}
	key, claim, known := d.configMapClaim()
	want := d.in.Settings.Left == nil && d.in.Settings.KyvernoLabels && namespace != "" && !blocked
	if known && claim.Namespace != namespace {
		want = false // Kyverno has moved, or is gone
	}
	switch {
	case !want && !known:
		return
	case want && labelledAll && !known:
		return // set by somebody else
	case want && labelledAll && !claim.Pending && claim.Removed < maxRemoved:
		return
	}
	at := namespace
	if known {
		at = claim.Namespace
	}
	cm := d.in.ConfigMap
	if cm == nil || cm.Namespace != at {
		d.result.ReadConfigMap = at
		return
	}
	if cm.Err == "" && (!cm.Found || known && cm.UID != claim.UID) {
		delete(d.claims, key)
	}
	d.configMap(cm, want, labelledAll)
}

// configMap decides on the label in Kyverno's ConfigMap.
func (d *decision) configMap(cm *ConfigMap, want, labelledAll bool) {
	labels, err := kyvernoLabels(cm)
	switch {
	case cm.Err != "":
		d.kyvernoNote("The ConfigMap %s/%s could not be read: %s", cm.Namespace, KyvernoName, cm.Err)
		return
	case !cm.Found:
		if want {
			d.kyvernoNote("There is no ConfigMap %s/%s. %s", cm.Namespace, KyvernoName, byHand)
		}
		return
	case cm.GardenerManaged:
		d.kyvernoNote("Gardener manages the ConfigMap %s/%s, the guard leaves it alone.", cm.Namespace, KyvernoName)
		return
	case err != nil:
		d.kyvernoNote("%s in the ConfigMap %s/%s is no JSON object of strings, and Kyverno does not read it either. Mend it.", KyvernoKey, cm.Namespace, KyvernoName)
		return
	}
	key := v1alpha1.ClaimKey(configMap, cm.Namespace, KyvernoName, cm.UID)
	// All labels are one field. Who only changed another one owns it now, but not our label; who applies the whole wants it.
	managers := cm.Appliers
	if d.claims[key].Pending {
		managers = cm.Managers
	}
	o := object{
		kind: configMap, namespace: cm.Namespace, name: KyvernoName, uid: cm.UID,
		value: labels[v1alpha1.ClaimLabel], managers: managers, keyAdded: cm.Labels == nil,
	}
	set, act := d.step(o, want)
	if act {
		d.result.Actions = append(d.result.Actions, Action{Key: key, Set: set, ConfigMap: cm})
	}
	if note, noted := d.notes[key]; noted {
		d.notes[kyvernoKey] = note
	}
	if want && o.has() && !labelledAll {
		d.result.KyvernoWaits = true
		if d.in.KyvernoSlow {
			d.kyvernoNote("Kyverno does not take %s over from its ConfigMap: it needs version 1.12 or newer. Upgrade it.", KyvernoKey)
		} else {
			d.kyvernoNote("The label is in Kyverno's ConfigMap, Kyverno is about to put it on its configurations.")
		}
	}
}

func (d *decision) kyvernoNote(format string, args ...any) {
	d.note(kyvernoKey, v1alpha1.FindingKyvernoLabels, fmt.Sprintf(format, args...))
}

// configMapClaim returns the claim on Kyverno's ConfigMap. There is one at most.
func (d *decision) configMapClaim() (string, v1alpha1.Claim, bool) {
	for key, claim := range d.claims {
		if claim.Kind == configMap {
			return key, claim, true
		}
	}
	return "", v1alpha1.Claim{}, false
}

// kyvernoLabels are the labels that the ConfigMap names. An empty value is no error: Kyverno reads it as none.
func kyvernoLabels(cm *ConfigMap) (map[string]string, error) {
	labels := map[string]string{}
	if cm.Labels == nil || *cm.Labels == "" {
		return labels, nil
	}
	if err := json.Unmarshal([]byte(*cm.Labels), &labels); err != nil {
		return nil, fmt.Errorf("failed to decode %s: %w", KyvernoKey, err)
	}
	if labels == nil { // null
		labels = map[string]string{}
	}
	return labels, nil
}
