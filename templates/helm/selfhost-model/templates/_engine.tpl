{{/* {args: […]} of the engine: engine.args, parallelism that they do not hold, precision, reasoning, extraArgs. */}}
{{- define "selfhost-model.args" -}}
{{- $plan := include "selfhost-model.modePlan" . | fromYaml -}}
{{- $forms := .Values.precision.forms -}}
{{- $planned := concat .Values.engine.args
    (include "selfhost-model.parallelArgs" . | fromYamlArray)
    (get $forms.weights (.Values.precision.weights | default "") | default list)
    (get $forms.kv (.Values.precision.kv | default "") | default list)
    ($plan.args | default list) -}}
args:
{{- range $planned }}
  - {{ include "selfhost-model.literal" . | quote }}
{{- end }}
{{- range .Values.extraArgs }}
  - {{ include "selfhost-model.text" . | quote }}
{{- end }}
{{- end }}

{{/* {env: {NAME: value}} of the engine without Secrets, in one map, so that no name is there twice. */}}
{{- define "selfhost-model.variables" -}}
{{- $plan := include "selfhost-model.modePlan" . | fromYaml -}}
{{- $home := .Values.cache.mountPath -}}
{{- $own := dict
    "HOME" $home
    "USER" "selfhost"
    "TORCHINDUCTOR_CACHE_DIR" (printf "%s/.cache/torchinductor" $home)
    "HF_HUB_OFFLINE" "1"
    "TRANSFORMERS_OFFLINE" "1" -}}
{{- if eq .Values.accelerator.vendor "nvidia" }}{{ $_ := set $own "CUDA_DEVICE_ORDER" "PCI_BUS_ID" }}{{ end -}}
{{- if eq .Values.accelerator.vendor "none" }}{{ $_ := set $own "NVIDIA_VISIBLE_DEVICES" "void" }}{{ end -}}
{{- with include "selfhost-model.caVariables" . | fromYaml }}{{ $own = merge . $own }}{{ end -}}
{{- $all := merge (deepCopy ($plan.env | default dict)) .Values.engine.env $own -}}
{{- range .Values.extraEnv }}{{ $_ := unset $all .name }}{{ end -}}
env:
{{- range $name, $value := $all }}
  {{ $name | quote }}: {{ include "selfhost-model.literal" $value | quote }}
{{- end }}
{{- end }}

{{/* The engine's `env`: sorted, then the key, then extraEnv as it is. */}}
{{- define "selfhost-model.env" -}}
{{- range $name, $value := (include "selfhost-model.variables" . | fromYaml).env }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- if eq .Values.engine.name "vllm" }}
# Never an argument: those can be read in the pod's description and by every process of the node.
{{ include "selfhost-model.keyVariable" (dict "root" . "name" "VLLM_API_KEY") }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* (dict "root" $ "name" "VLLM_API_KEY") */}}
{{- define "selfhost-model.keyVariable" -}}
- name: {{ .name | quote }}
  valueFrom:
    secretKeyRef:
      name: {{ include "selfhost-model.keySecretName" .root | quote }}
      key: {{ .root.Values.apiKey.existingSecretKey | quote }}
{{- end }}

{{/* requests and limits with the cards merged in, which Kubernetes wants as both, equal and whole. */}}
{{- define "selfhost-model.resources" -}}
{{- $resources := deepCopy .Values.resources -}}
{{- $cards := .Values.accelerator -}}
{{- if ne $cards.vendor "none" -}}
{{- if eq $cards.mode "devicePlugin" -}}
{{- range $kind := list "requests" "limits" -}}
{{- $_ := set $resources $kind (merge (dict $cards.resource (int $cards.count | toString)) (get $resources $kind | default dict)) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $resources "claims" (list (dict "name" "gpus")) -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}

{{/* (dict "root" $ "name" "startup" "probe" dict): the whole replacement, or ours. */}}
{{- define "selfhost-model.probe" -}}
{{- $given := get .root.Values.probes .name -}}
{{- if $given -}}
{{- toYaml $given -}}
{{- else -}}
{{- merge (dict "httpGet" (dict "path" .root.Values.probes.path "port" "http")) .probe | toYaml -}}
{{- end -}}
{{- end }}

{{- define "selfhost-model.probes" -}}
{{- $tries := divf .Values.probes.startupBudgetSeconds 10 | ceil | int -}}
startupProbe:
  {{- include "selfhost-model.probe" (dict "root" . "name" "startup"
        "probe" (dict "periodSeconds" 10 "failureThreshold" $tries "timeoutSeconds" 5)) | nindent 2 }}
readinessProbe:
  {{- include "selfhost-model.probe" (dict "root" . "name" "readiness"
        "probe" (dict "periodSeconds" 5 "failureThreshold" 3 "timeoutSeconds" 5)) | nindent 2 }}
# An engine under load answers late: two minutes of silence, then it is restarted.
livenessProbe:
  {{- include "selfhost-model.probe" (dict "root" . "name" "liveness"
        "probe" (dict "periodSeconds" 15 "failureThreshold" 8 "timeoutSeconds" 10)) | nindent 2 }}
{{- end }}

{{- define "selfhost-model.progressDeadline" -}}
{{- $fetch := ternary (int .Values.fetch.budgetSeconds) 0 .Values.fetch.enabled -}}
{{- .Values.rollout.progressDeadlineSeconds | default (add (int .Values.probes.startupBudgetSeconds) $fetch 900) | int -}}
{{- end }}

{{/* Spellings of an engine's options, the first one is the one to write. */}}
{{- define "selfhost-model.parallelOptions" -}}
{{- if eq .Values.engine.name "vllm" -}}
tensor: [--tensor-parallel-size, -tp]
pipeline: [--pipeline-parallel-size, -pp]
data: [--data-parallel-size, -dp]
{{- else -}}
tensor: [--tp-size, --tp, --tensor-parallel-size]
pipeline: [--pp-size, --pp, --pipeline-parallel-size]
data: [--dp-size, --dp, --data-parallel-size]
{{- end -}}
{{- end }}

{{/* What an argument list says for an option, the last time; empty where it does not. (list args option…) */}}
{{- define "selfhost-model.option" -}}
{{- $value := "" -}}
{{- $before := "" -}}
{{- $options := rest . -}}
{{- range first . -}}
{{- $word := include "selfhost-model.text" . -}}
{{- $name := regexFind "^[^=]*" $word | replace "_" "-" -}}
{{- if has $before $options }}{{ $value = $word }}{{ end -}}
{{- if and (has $name $options) (contains "=" $word) }}{{ $value = regexReplaceAll "^[^=]*=" $word "" }}{{ end -}}
{{- $before = ternary "" $name (contains "=" $word) -}}
{{- end -}}
{{- $value -}}
{{- end }}

{{- define "selfhost-model.parallelArgs" -}}
{{- $words := list -}}
{{- $given := concat .Values.engine.args .Values.extraArgs -}}
{{- $options := include "selfhost-model.parallelOptions" . | fromYaml -}}
{{- range list "tensor" "pipeline" "data" -}}
{{- $size := get $.Values.parallelism . | int -}}
{{- $known := get $options . -}}
{{- if and (gt $size 1) (not (include "selfhost-model.option" (prepend $known $given))) -}}
{{- $words = concat $words (list (first $known) (toString $size)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $words -}}
{{- end }}
