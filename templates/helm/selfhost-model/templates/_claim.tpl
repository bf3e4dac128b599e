{{/* Devices by dynamic resource allocation. */}}
{{- define "selfhost-model.usesClaim" -}}
{{- and (ne .Values.accelerator.vendor "none") (eq .Values.accelerator.mode "dra") -}}
{{- end }}

{{- define "selfhost-model.claimSpec" -}}
{{- $dra := .Values.accelerator.dra -}}
{{- $exactly := dict
    "deviceClassName" $dra.deviceClassName
    "allocationMode" "ExactCount"
    "count" (int .Values.accelerator.count) -}}
{{- if $dra.selectors -}}
{{- $cel := list -}}
{{- range $dra.selectors }}{{ $cel = append $cel (dict "cel" (dict "expression" .)) }}{{ end -}}
{{- $_ := set $exactly "selectors" $cel -}}
{{- end -}}
{{- /* v1beta1 knows no `exactly`: its fields lie in the request itself. */ -}}
{{- $request := ternary
    (merge (dict "name" "gpu") $exactly)
    (dict "name" "gpu" "exactly" $exactly)
    (hasSuffix "/v1beta1" $dra.apiVersion) -}}
{{- $devices := dict "requests" (list $request) -}}
{{- if $dra.constraints }}{{ $_ := set $devices "constraints" $dra.constraints }}{{ end -}}
{{- dict "spec" (dict "devices" $devices) | toYaml -}}
{{- end }}

{{/* A claim template is immutable: another content is another template. */}}
{{- define "selfhost-model.claimTemplateName" -}}
{{- printf "%s-%s" (include "selfhost-model.fullname" .)
      (include "selfhost-model.hash" (include "selfhost-model.claimSpec" .)) -}}
{{- end }}
