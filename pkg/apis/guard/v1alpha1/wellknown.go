// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The names below are a contract: people, dashboards and other controllers rely on them. They are changed only together
// with a new API version.
const (
	// ExtensionType is the type in a Shoot's spec.extensions[] and of the Extension resource on the seed.
	ExtensionType = "shoot-hibernation-guard"

	// FieldManager is the manager name under which the guard writes to a Shoot's webhook configurations.
	FieldManager = "shoot-hibernation-guard"

	// ClaimFieldManager is the manager name under which the guard sets and removes ClaimLabel.
	ClaimFieldManager = "shoot-hibernation-guard-claim"

	// ClaimLabel with the value ClaimValue is what Gardener's check for problematic webhooks leaves out (gardener:
	// pkg/gardenlet/controller/shoot/care/constraints.go). The guard sets it on configurations whose flagged hooks it opens.
	// It is Gardener's name, and others set it, too: what the guard set is in GuardState.Claims.
	ClaimLabel = "resources.gardener.cloud/managed-by"
	// ClaimValue is the value of ClaimLabel.
	ClaimValue = "gardener"

	// LeaveLabel on a webhook configuration, with the value "true", keeps the guard from opening any of its hooks.
	// What is already open because of the guard is given back nevertheless.
	LeaveLabel = GroupName + "/leave"

	// OriginalsAnnotation is on a webhook configuration as long as at least one of its hooks is open because of the guard.
	// Its value is an Originals object in JSON: for people, and as second copy should the record be lost.
	OriginalsAnnotation = GroupName + "/originals"

	// ReportNamespace and ReportName name the ConfigMap in the Shoot that tells its owner what the guard did.
	ReportNamespace = "kube-system"
	// ReportName is described at ReportNamespace.
	ReportName = "shoot-hibernation-guard"
	// ReportKey is the key of the ConfigMap under which the report stands, as YAML.
	ReportKey = "report.yaml"
)

// Reasons of the Extension condition SystemComponentsHealthy. Gardener puts "Extension" in front of the reason of a
// Progressing condition when it merges it into the Shoot's status.
const (
	// ReasonEnforced (True): no hook is open because of the guard.
	ReasonEnforced = "WebhooksEnforced"
	// ReasonAsleep (True): the Shoot sleeps; hooks may be open, nothing runs that they could guard.
	ReasonAsleep = "ShootAsleep"
	// ReasonOpening (Progressing): the Shoot goes down, hooks are set or held fail-open.
	ReasonOpening = "WebhooksOpening"
	// ReasonFailOpen (Progressing): the Shoot woke up, hooks are held open until their backends answer.
	ReasonFailOpen = "WebhooksFailOpen"
	// ReasonStillOpen (False): the waking-up deadline has passed and hooks are still open.
	ReasonStillOpen = "WebhooksStillFailOpen"
	// ReasonOriginalUnknown (False): a hook is open because of the guard, but its original is neither on record nor in
	// its annotation; the guard does not guess.
	ReasonOriginalUnknown = "OriginalUnknown"
	// ReasonRestoreFailed: the guard gave up to give a hook its original back. False if it stands open, Progressing if its
	// backend is gone.
	ReasonRestoreFailed = "RestoreFailed"
	// ReasonMayNotWake (Progressing): hibernation went on although a hook could not be opened, or it cannot be in the wake-up.
	ReasonMayNotWake = "MayNotWake"
	// ReasonUnreachable (Unknown): the Shoot's API server should run but does not answer, and hooks are on record.
	ReasonUnreachable = "ShootUnreachable"
	// ReasonRecordNotWritten (Progressing): the record is damaged or of a newer version. What it says is restored, but it is
	// not rewritten.
	ReasonRecordNotWritten = "RecordNotWritten"
	// ReasonConfigInvalid (Progressing): the providerConfig cannot be decoded; the last good one or the defaults apply.
	ReasonConfigInvalid = "ConfigInvalid"
)

// Reasons of a single hook in GuardStatus, beside those of backends (pkg/backend), of hooks that are left alone (pkg/scope)
// and OriginalUnknown and RestoreFailed above.
const (
	// ReasonRevertedByOwner: another manager, named in the message, closes the hook again and again while nothing answers
	// behind it.
	ReasonRevertedByOwner = "RevertedByOwner"
	// ReasonNotOpenable: the API server refuses to change the configuration for its own invalidity.
	ReasonNotOpenable = "NotOpenable"
	// ReasonWriteFailed: the API server did not take our patch; it is tried again.
	ReasonWriteFailed = "WriteFailed"
)

// Reasons of events: on the Extension, and the first two also on the webhook configurations in the Shoot.
const (
	// EventSetFailOpen: hooks were set fail-open.
	EventSetFailOpen = "SetFailOpen"
	// EventPolicyRestored: hooks got their own policy back from the guard.
	EventPolicyRestored = "PolicyRestored"
	// EventLeftFailOpen: the Extension was released although hooks are still open.
	EventLeftFailOpen = "LeftFailOpen"
)

// Reasons of GateStatus.Blocking and GuardStatus.Findings.
const (
	// FindingNotGuarded: Gardener's rule flags the hook and the guard does not open it; the message says why.
	FindingNotGuarded = "NotGuarded"
	// FindingHidden: a label that the guard did not set hides from Gardener's check a hook that the guard does not open.
	FindingHidden = "HiddenNotGuarded"
	// FindingClaimRemoved: somebody else took the guard's label off twice.
	FindingClaimRemoved = "ClaimRemoved"
	// FindingClaimFailed: the label could not be set; the message holds the API server's words.
	FindingClaimFailed = "ClaimFailed"
	// FindingRemediated: Gardener's remediator changed the configuration and left its warning annotation, which keeps the gate
	// closed until somebody removes it.
	FindingRemediated = "Remediated"
	// FindingKyvernoLabels: Kyverno does not take the label over from its ConfigMap, or the ConfigMap cannot be used.
	FindingKyvernoLabels = "KyvernoWebhookLabels"
	// FindingConstraintLeft: the operator or the Shoot's owner wants the constraint to stay.
	FindingConstraintLeft = "ConstraintLeft"
	// FindingCAExpires: a CA in a caBundle expires before the planned wake-up.
	FindingCAExpires = "CAExpires"
	// FindingConversion: a CRD conversion webhook may stand in the way of the wake-up; nobody can open it.
	FindingConversion = "ConversionWebhook"
	// FindingOrphan: nothing stands behind a hook although the Shoot is awake.
	FindingOrphan = "Orphan"
	// FindingGardenerManaged: a hook that Gardener or another extension manages has its backend in the Shoot; the guard leaves
	// it alone.
	FindingGardenerManaged = "ManagedByGardener"
	// FindingTimeouts: the timeouts of mutating hooks add up to more than a request may take even while they are open.
	FindingTimeouts = "TimeoutsAddUp"
	// FindingManagedSeed: the Shoot serves extensions.gardener.cloud, so it is a seed itself; the guard only reports.
	FindingManagedSeed = "ManagedSeed"
)

// Constraints in the status of the Shoot in the garden cluster, written if a garden kubeconfig is injected.
const (
	// ConstraintWebhooksEnforced (True): no hook is open because of the guard.
	ConstraintWebhooksEnforced = "WebhooksEnforced"
	// ConstraintHibernationPrepared (True): the gate is open, and the guard opens every hook that keeps it in question.
	ConstraintHibernationPrepared = "HibernationPrepared"
)

// Reasons of the constraints. Those of WebhooksEnforced are the condition's; those of HibernationPrepared are these, that of the
// first finding in GateStatus.Blocking, NotOpenable and MayNotWake.
const (
	// ReasonGateOpen (True): Gardener lets the Shoot hibernate without any help of the guard.
	ReasonGateOpen = "GateOpen"
	// ReasonGateLifted (True): it does because of the guard's claims.
	ReasonGateLifted = "GateLifted"
	// ReasonGateClosed (False): it does not.
	ReasonGateClosed = "GateClosed"
	// ReasonNotJudged (Unknown): no pass over the awake Shoot has been made yet.
	ReasonNotJudged = "NotJudged"
)
