{{/* The name of every object: the release's name, followed by the chart's name unless the release's already contains it. */}}
{{- define "tollgate.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Rejects values that contradict each other, which the schema cannot check. */}}
{{- define "tollgate.check" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if not .Values.postgresql.existingSecret -}}
{{- fail "replicas is more than 1, but SQLite serves one node: set postgresql.existingSecret" -}}
{{- end -}}
{{- if and (ne .Values.files.accessMode "ReadWriteMany") (not .Values.files.existingClaim) -}}
{{- fail "replicas is more than 1, but files.accessMode allows only one node to use the files: set ReadWriteMany" -}}
{{- end -}}
{{- end -}}
{{- end }}
