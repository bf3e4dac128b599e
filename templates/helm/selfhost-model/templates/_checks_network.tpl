{{- define "selfhost-model.check.network" -}}
{{- $found := list -}}
{{- $published := or .Values.ingress.enabled .Values.httpRoute.enabled -}}
{{- if eq .Values.engine.name "sglang" -}}
{{- if $published -}}
{{- $found = append $found "SGLang runs without a key here, since it prints its keys to its log: nothing may publish it. Set ingress.enabled=false and httpRoute.enabled=false, or put a gateway in front that checks keys." -}}
{{- end -}}
{{- if .Values.apiKey.existingSecret -}}
{{- $found = append $found "apiKey.existingSecret is set, and SGLang gets no key from this chart, since it would print it to its log: leave it empty." -}}
{{- end -}}
{{- end -}}
{{- if and (ne .Values.service.type "ClusterIP") (not .Values.service.acceptKeylessPaths) -}}
{{- $open := ternary "SGLang has no key here at all" "vLLM asks for its key below /v1, /v2, /inference and /cohere only, and /invocations, which generates as well, is open" (eq .Values.engine.name "sglang") -}}
{{- $found = append $found (printf "service.type is %s, which publishes every path: %s. Set service.type=ClusterIP and publish /v1 by ingress or httpRoute, or say that everybody who reaches the port may use it: service.acceptKeylessPaths=true." .Values.service.type $open) -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not (and .Values.ingress.host .Values.ingress.tlsSecret)) -}}
{{- $found = append $found (printf "ingress.enabled needs ingress.host and ingress.tlsSecret: a key must not travel in the clear. Make the Secret: kubectl create secret tls NAME --cert=tls.crt --key=tls.key --namespace %s" .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- $found = append $found "httpRoute.enabled needs httpRoute.parentRefs: a route without a gateway serves nobody (kubectl get gateways -A)." -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{- define "selfhost-model.check.engine" -}}
{{- $found := list -}}
{{- $mode := include "selfhost-model.modePlan" . | fromYaml -}}
{{- $names := concat (keys .Values.engine.env) (keys ($mode.env | default dict)) -}}
{{- range .Values.extraEnv }}{{ $names = append $names .name }}{{ end -}}
{{- range $names | uniq | sortAlpha -}}
{{- if has . (list "CUDA_VISIBLE_DEVICES" "NVIDIA_VISIBLE_DEVICES" "HIP_VISIBLE_DEVICES" "ROCR_VISIBLE_DEVICES" "GPU_DEVICE_ORDINAL" "ZE_AFFINITY_MASK" "ONEAPI_DEVICE_SELECTOR") -}}
{{- $found = append $found (printf "%s selects cards, and in a cluster only accelerator.count does: the numbers of a node mean nothing in the container. Remove it." .) -}}
{{- end -}}
{{- if has . (list "HF_TOKEN" "HUGGING_FACE_HUB_TOKEN" "HUGGINGFACE_HUB_TOKEN") -}}
{{- $found = append $found (printf "%s is not for the engine, which asks no hub: name a Secret in fetch.existingSecret." .) -}}
{{- end -}}
{{- end -}}
{{- if has "VLLM_API_KEY" $names -}}
{{- $found = append $found "VLLM_API_KEY is set by apiKey alone, so that it does not lie readable in the release: name a Secret in apiKey.existingSecret." -}}
{{- end -}}
{{- $beside := list -}}
{{- range .Values.extraEnv -}}
{{- if has .name $beside }}{{ $found = append $found (printf "extraEnv holds %s twice." .name) }}{{ end -}}
{{- $beside = append $beside .name -}}
{{- end -}}
{{- range list "HF_TOKEN" "HUGGING_FACE_HUB_TOKEN" "HUGGINGFACE_HUB_TOKEN" -}}
{{- if hasKey $.Values.fetch.env . -}}
{{- $found = append $found (printf "fetch.env holds %s, which would lie readable in the release: name a Secret in fetch.existingSecret." .) -}}
{{- end -}}
{{- end -}}
{{- range concat .Values.engine.command .Values.engine.args ($mode.args | default list) .Values.extraArgs -}}
{{- if regexMatch "^--(admin[-_])?api[-_]key(=|$)" (toString .) -}}
{{- $found = append $found "an argument holds the key: arguments are readable in the pod's description. Name a Secret in apiKey.existingSecret." -}}
{{- end -}}
{{- end -}}
{{- $given := concat .Values.engine.args .Values.extraArgs -}}
{{- $options := include "selfhost-model.parallelOptions" . | fromYaml -}}
{{- range list "tensor" "pipeline" "data" -}}
{{- $said := include "selfhost-model.option" (prepend (get $options .) $given) -}}
{{- $size := get $.Values.parallelism . | int | toString -}}
{{- if and $said (ne $said $size) (not (has "--enable-dp-attention" $given)) -}}
{{- $found = append $found (printf "parallelism.%s is %s, and the arguments say %s %s: say the same in both." . $size (get $options . | first) $said) -}}
{{- end -}}
{{- end -}}
{{- $end := include "selfhost-model.option" (list $given "--shutdown-timeout") -}}
{{- if and $end (ne $end (.Values.drain.engineSeconds | int | toString)) -}}
{{- $found = append $found (printf "drain.engineSeconds is %d, and the arguments say --shutdown-timeout %s: the pod is killed after the one, and the engine ends by the other. Say the same in both, as by extraArgs={--shutdown-timeout,%d}." (int .Values.drain.engineSeconds) $end (int .Values.drain.engineSeconds)) -}}
{{- end -}}
{{- if and .Values.test.enabled .Values.test.image.repository (not (or .Values.test.image.tag .Values.test.image.digest)) -}}
{{- $found = append $found (printf "test.image.repository is %s without a tag: set test.image.tag or test.image.digest." .Values.test.image.repository) -}}
{{- end -}}
{{- $port := include "selfhost-model.option" (list $given "--port") -}}
{{- if and $port (ne $port (.Values.engine.port | int | toString)) -}}
{{- $found = append $found (printf "engine.port is %d, and the arguments say --port %s: probes and Service would ask nobody." (int .Values.engine.port) $port) -}}
{{- end -}}
{{- $name := include "selfhost-model.option" (list $given "--served-model-name") -}}
{{- if and $name (ne $name .Values.model.servedName) (not (has .Values.model.servedName $given)) -}}
{{- $found = append $found (printf "model.servedName is %s, and the arguments say --served-model-name %s." .Values.model.servedName $name) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{- define "selfhost-model.check.scaling" -}}
{{- $found := list -}}
{{- $scale := .Values.autoscaling -}}
{{- $measured := or .Values.monitoring.podMonitor .Values.monitoring.serviceMonitor $scale.enabled -}}
{{- if and $scale.enabled (gt (int $scale.minReplicas) (int $scale.maxReplicas)) -}}
{{- $found = append $found (printf "autoscaling.minReplicas is %d and maxReplicas %d." (int $scale.minReplicas) (int $scale.maxReplicas)) -}}
{{- end -}}
{{- if and $scale.enabled (eq $scale.kind "keda") (not $scale.prometheus) -}}
{{- $found = append $found "autoscaling.kind is keda, and autoscaling.prometheus is empty: give its address, such as http://prometheus-operated.monitoring:9090" -}}
{{- end -}}
{{- if and .Values.monitoring.podMonitor .Values.monitoring.serviceMonitor -}}
{{- $found = append $found "monitoring.podMonitor and monitoring.serviceMonitor are both on: each series would come twice. Choose one." -}}
{{- end -}}
{{- if and $measured (eq .Values.engine.name "sglang") (not (has "--enable-metrics" (concat .Values.engine.args .Values.extraArgs))) -}}
{{- $found = append $found "SGLang shows metrics only with --enable-metrics: add it to extraArgs." -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}
