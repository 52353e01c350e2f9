// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

var managedSeed = v1alpha1.Finding{Reason: v1alpha1.FindingManagedSeed, Message: "The Shoot serves " + extensionsv1alpha1.SchemeGroupVersion.Group +
	", so it is a seed itself. The guard opens and claims nothing in it; what is open because of the guard is given back."}

// askWhetherSeed asks whether the Shoot is a seed itself. An error is no answer: nothing new is opened or claimed then, but for a
// call of a transition, which cannot wait for one.
func (p *pass) askWhetherSeed(ctx context.Context) {
	if p.phase != phase.GoingDown && p.phase != phase.WakingUp && !p.cares() {
		return
	}
	p.isSeed, p.seedError = p.conn.Serves(ctx, extensionsv1alpha1.SchemeGroupVersion.Group)
	if p.seedError != nil && ctx.Err() == nil {
		p.log.Error(p.seedError, "Whether the Shoot is a seed is not known")
	}
	if p.call() {
		p.seedError = nil
	}
}

// subjects are all configurations with what there is to say about their hooks.
func (p *pass) subjects() []gate.Subject {
	out := make([]gate.Subject, 0, len(p.configurations))
	for _, c := range p.configurations {
		s := gate.Subject{Configuration: c}
		cannot := p.cannot(c)
		for _, h := range c.Hooks {
			about := gate.Hook{Scope: scope.Judge(c, h, p.config.Webhooks), Cannot: cannot}
			if rec, onRecord := p.state.Hooks[c.Key(h)]; onRecord {
				if original, err := hook.FromOriginal(rec.Original); err == nil {
					about.Original = &original
				}
			}
			s.Hooks = append(s.Hooks, about)
		}
		out = append(out, s)
	}
	return out
}

// cannot is why hooks of a configuration are not opened although they are in scope; empty if they are.
func (p *pass) cannot(c hook.Configuration) string {
	opens := p.memory.opens[keyOf(c)]
	switch {
	case *p.config.Mode == v1alpha1.ModeReport:
		return "The mode is Report."
	case p.isSeed:
		return "The Shoot is a seed itself."
	case p.phase == phase.Awake && opens.Refused != "" && opens.RefusedAt == c.ResourceVersion:
		return "The API server refuses to change the configuration: " + opens.Refused
	}
	return ""
}

// gateSettings are what is wanted of the gate in this pass.
func (p *pass) gateSettings() gate.Settings {
	s := gate.Settings{KyvernoLabels: *p.config.Kyverno.ManageWebhookLabels}
	if p.released() {
		s.Left = left("The extension is being disabled.")
		return s
	}
	if s.Frozen = p.frozen(); s.Frozen == "" {
		s.Left = p.leaves()
	}
	return s
}

// frozen is why nothing is claimed and nothing given up now.
func (p *pass) frozen() string {
	ignored, _ := strconv.ParseBool(p.cluster.Shoot.Annotations[v1beta1constants.ShootIgnore])
	switch {
	case p.readOnly != "":
		return "the record is left as it is: " + p.readOnly
	case p.seedError != nil:
		return "whether the Shoot is a seed itself is not known: " + p.seedError.Error()
	case ignored:
		return "the Shoot is ignored by Gardener."
	case p.facts.HibernationEnabled:
		return "the Shoot is to hibernate already."
	}
	return ""
}

// leaves says who does not want the constraint to be lifted; nil if nobody.
func (p *pass) leaves() *v1alpha1.Finding {
	switch {
	case p.isSeed:
		return &managedSeed
	case *p.config.Mode == v1alpha1.ModeReport:
		return left("The mode is Report. With mode: Guard the guard lifts it where it opens every flagged hook.")
	case p.guard.Constraint == v1alpha1.ConstraintLeave:
		return left("The operator of the landscape wants it to stay (hibernationConstraint: Leave in the ControllerConfiguration).")
	case *p.config.HibernationConstraint == v1alpha1.ConstraintLeave:
		return left("The GuardConfig says hibernationConstraint: Leave. Without that the guard lifts it.")
	case p.cluster.Shoot.Spec.Hibernation == nil && !p.enabledByOwner():
		return left("The operator enabled the extension, and the Shoot has no spec.hibernation.")
	}
	return nil
}

func left(why string) *v1alpha1.Finding {
	return &v1alpha1.Finding{Reason: v1alpha1.FindingConstraintLeft, Message: "Gardener's constraint HibernationPossible is left as it is. " + why}
}

// enabledByOwner says whether the Shoot's own spec names the extension; otherwise the registration's autoEnable does.
func (p *pass) enabledByOwner() bool {
	return slices.ContainsFunc(p.cluster.Shoot.Spec.Extensions, func(e gardencorev1beta1.Extension) bool {
		return e.Type == v1alpha1.ExtensionType
	})
}

func (p *pass) schedules() []gardencorev1beta1.HibernationSchedule {
	if h := p.cluster.Shoot.Spec.Hibernation; h != nil {
		return h.Schedules
	}
	return nil
}

// unopened says which hooks in claimed configurations are flagged and not opened: without the claim Gardener would not have let
// the Shoot hibernate (design R9).
func (p *pass) unopened() []string {
	if p.readOnly != "" {
		return nil // the attempts that are held back could not be counted
	}
	var out []string
	for _, f := range gate.Unopened(p.subjects(), p.state.Claims) {
		out = append(out, fmt.Sprintf("%s/%s is not opened although its configuration is claimed: %s", f.Name, f.Hook, f.Message))
	}
	return out
}
