# Written by `make generate-registration` from hack/registration and the chart.
#
# What an operator applies to the garden cluster to offer the extension on a landscape. Every seed with a Shoot that uses
# it then gets the controller. Before that: build and push an image (`make docker-image`), and name it under values.
---
apiVersion: core.gardener.cloud/v1
kind: ControllerDeployment
metadata:
  name: extension-shoot-hibernation-guard
helm:
  values: # all of them: charts/gardener-extension-shoot-hibernation-guard/values.yaml
    image:
      repository: registry.example.com/gardener-extension-shoot-hibernation-guard
      tag: {{ .Version }}
  rawChart: {{ .Chart }}
---
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerRegistration
metadata:
  name: extension-shoot-hibernation-guard
  annotations:
    security.gardener.cloud/pod-security-enforce: restricted
spec:
  deployment:
    deploymentRefs:
    - name: extension-shoot-hibernation-guard
  resources:
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
