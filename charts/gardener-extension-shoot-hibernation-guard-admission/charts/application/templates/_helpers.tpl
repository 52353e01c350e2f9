{{- define "labels" -}}
app.kubernetes.io/name: gardener-extension-shoot-hibernation-guard-admission
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "clusterwide-name" -}}
extensions.gardener.cloud:extension-shoot-hibernation-guard:admission
{{- end -}}
