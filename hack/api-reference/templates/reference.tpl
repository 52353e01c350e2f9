{{ define "gvList" -}}
<!-- Written by `make generate` from the types; do not edit. -->
{{ range . -}}
# {{ .GroupVersionString }}

{{ .Doc | trim }}
{{ range .SortedTypes }}{{ if not (or .References .Imported) }}
- {{ markdownRenderTypeLink . }}
{{- end }}{{ end }}
{{ range .SortedTypes }}{{ if not .References }}{{ template "reference" . }}{{ end }}{{ end }}
{{- range .SortedTypes }}{{ if .References }}{{ template "reference" . }}{{ end }}{{ end }}
{{- end }}
{{- end }}

{{- define "reference" -}}
{{- if not .Imported }}
## {{ .Name }}

{{ .Doc | trim }}
{{- if .References }}

In {{ range $i, $type := .SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $type }}{{ end }}.
{{- end }}
{{- if .Members }}

| field | type | |
|---|---|---|
{{- range .Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }}{{ if index .Markers "optional" }}, optional{{ end }} | {{ markdownRenderFieldDoc .Doc | replace "<br />" " " | trim }} |
{{- end }}
{{- end }}
{{- if .EnumValues }}

| value | |
|---|---|
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc | replace "<br />" " " | trim }} |
{{- end }}
{{- end }}
{{ end }}
{{- end }}
