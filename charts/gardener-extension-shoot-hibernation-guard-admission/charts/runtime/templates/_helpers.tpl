{{- define "name" -}}
gardener-extension-shoot-hibernation-guard-admission
{{- end -}}

{{- define "selector" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "leader-election-id" -}}
{{ include "name" . }}-leader-election
{{- end -}}

{{- define "image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.ref -}}
{{ .Values.image.ref }}
{{- else -}}
{{ .Values.image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
{{- end -}}
{{- end -}}

{{- /* Where Gardener's generic kubeconfigs look for their token. */}}
{{- define "garden-kubeconfig-directory" -}}
/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig
{{- end -}}
