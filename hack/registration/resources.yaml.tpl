{{ define "resources" }}  resources:
  - kind: Extension
    type: shoot-hibernation-guard
    clusterCompatibility: [shoot]
    # Without workers there is nothing in the Shoot that a webhook could be served from.
    workerlessSupported: false
    # With [shoot] every Shoot has the extension unless its owner disables it.
    autoEnable: []
    lifecycle:
      # The extension is called, and waited for, while the Shoot's API server runs: before the nodes go, and before they
      # come back. It relies on this.
      reconcile: AfterKubeAPIServer
      delete: BeforeKubeAPIServer
      migrate: BeforeKubeAPIServer
    # A call takes 20 s at most; this leaves room for repeated calls.
    reconcileTimeout: 2m
{{ end }}
{{- define "values" -}}
values: # all of them: charts/gardener-extension-shoot-hibernation-guard/values.yaml
  image:
    repository: registry.example.com/gardener-extension-shoot-hibernation-guard
    tag: {{ .Version }}
  config:
    # Gardener refuses to hibernate a Shoot that has fail-closed webhooks on critical resources: exactly the Shoots this
    # extension is for. Lift: where the guard opens every such webhook of a configuration, a label makes Gardener leave it
    # out of that check. The same label keeps Gardener from warning of these webhooks before maintenance, and from mending
    # them. Leave: Gardener goes on refusing.
    hibernationConstraint: Lift
{{- end -}}
