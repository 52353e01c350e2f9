# Written by `make generate-registration` from hack/registration and the chart.
#
# What an operator applies to the garden cluster to offer the extension on a landscape. Every seed with a Shoot that uses
# it then gets the controller. Before that: build and push an image (`make docker-images`), and name it under values.
# A landscape that gardener-operator manages takes extension.yaml instead.
---
apiVersion: core.gardener.cloud/v1
kind: ControllerDeployment
metadata:
  name: extension-shoot-hibernation-guard
# With true the guard also tells on the Shoots themselves, as constraints, what it holds open. Such a kubeconfig may change all
# Shoots of its seed.
injectGardenKubeconfig: false
helm:
{{ include "values" . 2 }}
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
{{ template "resources" }}
