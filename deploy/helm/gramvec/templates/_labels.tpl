{{- define "gramvec.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}
