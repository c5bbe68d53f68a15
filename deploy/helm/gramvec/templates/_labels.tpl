{{- define "gramvec.selector" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}
{{- define "gramvec.labels" -}}
{{ include "gramvec.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- define "gramvec.probe" -}}
{{- if .context.Values.settings.GRAMVEC_TLS_CLIENT_CA }}
tcpSocket:
  port: http
{{- else }}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .context.Values.settings.GRAMVEC_TLS_CERTIFICATE }}
  scheme: HTTPS
  {{- end }}
{{- end }}
{{- end }}
