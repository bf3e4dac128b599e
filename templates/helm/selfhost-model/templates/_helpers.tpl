{{/*
Names. The longest suffix is "-fetch-" and eight digits of a hash; a Service's name starts with a letter.
*/}}
{{- define "selfhost-model.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- end -}}
{{- $name = regexReplaceAll "[^a-z0-9-]+" (lower $name) "-" | trimAll "-" -}}
{{- if regexMatch "^[0-9]" $name -}}
{{- $name = printf "m-%s" $name -}}
{{- end -}}
{{- $name | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{- define "selfhost-model.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "selfhost-model.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{- define "selfhost-model.claimName" -}}
{{- .Values.weights.existingClaim | default (printf "%s-weights" (include "selfhost-model.fullname" .)) -}}
{{- end }}

{{- define "selfhost-model.keySecretName" -}}
{{- .Values.apiKey.existingSecret | default (printf "%s-api-key" (include "selfhost-model.fullname" .)) -}}
{{- end }}

{{/*
Labels. A selector is immutable: it holds nothing that a value or a new version of the chart can change.
*/}}
{{- define "selfhost-model.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "selfhost-model.engineSelector" -}}
{{ include "selfhost-model.selector" . }}
app.kubernetes.io/component: engine
{{- end }}

{{- define "selfhost-model.ownLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ regexReplaceAll "[^A-Za-z0-9_.-]" .Values.engine.version "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: selfhost
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- range $key, $value := .Values.selfhost }}
{{- if $value }}
io.selfhost.{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* metadata of every object: (dict "root" $ "component" "engine" "name" "…" "labels" dict "annotations" dict) */}}
{{- define "selfhost-model.metadata" -}}
{{- $own := include "selfhost-model.ownLabels" .root | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/component" .component -}}
{{- $annotations := merge (deepCopy (.annotations | default dict)) .root.Values.commonAnnotations -}}
name: {{ .name | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- merge $own (deepCopy (.labels | default dict)) .root.Values.commonLabels | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The first eight digits of an object's hash, in a form that other languages can compute: JSON, keys sorted. */}}
{{- define "selfhost-model.hash" -}}
{{- fromYaml . | toRawJson | sha256sum | trunc 8 -}}
{{- end }}

{{/* (dict "registry" … "repository" … "tag" … "digest" …) */}}
{{- define "selfhost-model.imageOf" -}}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .repository -}}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end -}}
{{- end }}

{{- define "selfhost-model.tag" -}}
{{- .Values.image.tag | default (printf "v%s" .Values.engine.version) -}}
{{- end }}

{{- define "selfhost-model.image" -}}
{{- include "selfhost-model.imageOf" (merge (dict "tag" (include "selfhost-model.tag" .)) .Values.image) -}}
{{- end }}

{{- define "selfhost-model.testImage" -}}
{{- if .Values.test.image.repository -}}
{{- include "selfhost-model.imageOf" .Values.test.image -}}
{{- else -}}
{{- include "selfhost-model.image" . -}}
{{- end -}}
{{- end }}

{{/* Kueue holds back what has no label in a cluster that manages all of it: the job too. */}}
{{- define "selfhost-model.queue" -}}
{{- with .Values.queue }}{{ dict "kueue.x-k8s.io/queue-name" . | toYaml }}{{ end -}}
{{- end }}

{{/* Bytes of an amount such as 12Gi. */}}
{{- define "selfhost-model.bytes" -}}
{{- $units := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-zA-Z]+$" .)) | int64 -}}
{{- end }}

{{/* YAML reads an unquoted on or off as a boolean. */}}
{{- define "selfhost-model.mode" -}}
{{- $mode := .Values.reasoning.mode -}}
{{- if kindIs "bool" $mode -}}{{ ternary "on" "off" $mode }}{{- else -}}{{ $mode }}{{- end -}}
{{- end }}

{{/* The key of reasoning.modes: budget=2048 and effort=low before budget and effort. */}}
{{- define "selfhost-model.modeKey" -}}
{{- $mode := include "selfhost-model.mode" . -}}
{{- $value := "" -}}
{{- if eq $mode "budget" }}{{ $value = int .Values.reasoning.budget_tokens | toString }}{{ end -}}
{{- if eq $mode "effort" }}{{ $value = toString .Values.reasoning.effort }}{{ end -}}
{{- $exact := ternary (printf "%s=%s" $mode $value) $mode (ne $value "") -}}
{{- ternary $mode $exact (and (kindIs "map" (get .Values.reasoning.modes $mode)) (not (kindIs "map" (get .Values.reasoning.modes $exact)))) -}}
{{- end }}

{{/* What was planned for the mode: {args, env, request, thinks}; empty for a model without modes. */}}
{{- define "selfhost-model.modePlan" -}}
{{- get .Values.reasoning.modes (include "selfhost-model.modeKey" .) | default dict | toYaml -}}
{{- end }}

{{/* Names of a map whose values are not null, which is how a second values file takes one out. */}}
{{- define "selfhost-model.names" -}}
{{- $found := list -}}
{{- range $name, $value := . }}{{ if not (kindIs "invalid" $value) }}{{ $found = append $found $name }}{{ end }}{{ end -}}
{{- sortAlpha $found | join ", " -}}
{{- end }}

{{/* How many replicas there can be at most. */}}
{{- define "selfhost-model.mostReplicas" -}}
{{- if .Values.autoscaling.enabled -}}
{{- int .Values.autoscaling.maxReplicas -}}
{{- else -}}
{{- int (.Values.replicaCount | default 1) -}}
{{- end -}}
{{- end }}

{{/* A number as it was written: 1000000, not 1e+06. */}}
{{- define "selfhost-model.text" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else -}}{{ toRawJson . }}{{- end -}}
{{- end }}

{{/* Kubernetes replaces $(NAME) and halves $$ in commands, arguments and variables; this is read back as it was. */}}
{{- define "selfhost-model.literal" -}}
{{- include "selfhost-model.text" . | replace "$" "$$" -}}
{{- end }}
