# Written by `make generate-registration` from hack/registration.
#
# What an operator applies to the runtime cluster of a landscape that gardener-operator manages. It takes the place of
# controller-registration.yaml, and brings the admission webhook for the providerConfig along. Before that: build and push an
# image of each command and the three charts (`helm package`, `helm push`), and name them here.
---
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata:
  name: extension-shoot-hibernation-guard
  annotations:
    security.gardener.cloud/pod-security-enforce: restricted
spec:
{{ template "resources" }}  deployment:
    extension:
      # On a seed only while a Shoot there uses the extension.
      policy: OnDemand
      # With true the guard also tells on the Shoots themselves, as constraints, what it holds open. Such a kubeconfig may
      # change all Shoots of its seed.
      injectGardenKubeconfig: false
      helm:
        ociRepository:
          ref: registry.example.com/charts/gardener-extension-shoot-hibernation-guard:{{ .ChartVersion }}
{{ include "values" . 6 }}
    admission:
      runtimeCluster:
        helm:
          ociRepository:
            ref: registry.example.com/charts/gardener-extension-shoot-hibernation-guard-admission-runtime:{{ .ChartVersion }}
      virtualCluster:
        helm:
          ociRepository:
            ref: registry.example.com/charts/gardener-extension-shoot-hibernation-guard-admission-application:{{ .ChartVersion }}
      values:
        image:
          repository: registry.example.com/gardener-extension-shoot-hibernation-guard-admission
          tag: {{ .Version }}
