{{/* What a schema cannot say: all that is wrong, in one answer. */}}
{{- define "selfhost-model.check" -}}
{{- $found := list -}}
{{- range list "cards" "memory" "storage" "reasoning" "precision" "network" "engine" "scaling" -}}
{{- range include (printf "selfhost-model.check.%s" .) $ | fromYamlArray -}}
{{- $found = append $found (printf "- %s" .) -}}
{{- end -}}
{{- end -}}
{{- if $found -}}
{{- fail (printf "\n%s" (join "\n" $found)) -}}
{{- end -}}
{{- end }}

{{- define "selfhost-model.check.cards" -}}
{{- $found := list -}}
{{- $cards := .Values.accelerator -}}
{{- $size := .Values.parallelism -}}
{{- $ranks := mul (int $size.tensor) (int $size.pipeline) (int $size.data) -}}
{{- $backends := dict "nvidia" "cuda" "amd" "rocm" "intel" "xpu" "none" "cpu" -}}
{{- $vendors := dict "cuda" "nvidia" "rocm" "amd" "xpu" "intel" "cpu" "none" -}}
{{- $backend := get $backends $cards.vendor -}}
{{- if ne .Values.engine.backend $backend -}}
{{- $found = append $found (printf "engine.backend is %s and accelerator.vendor is %s: an image for %s needs accelerator.vendor %s, and a pod with accelerator.vendor %s needs an image for %s." .Values.engine.backend $cards.vendor .Values.engine.backend (get $vendors .Values.engine.backend) $cards.vendor $backend) -}}
{{- end -}}
{{- if eq $cards.vendor "none" -}}
{{- if ne $cards.mode "none" -}}
{{- $found = append $found (printf "accelerator.vendor is none, so nothing can be asked for by %s: set accelerator.mode=none." $cards.mode) -}}
{{- end -}}
{{- else -}}
{{- if eq $cards.mode "none" -}}
{{- $found = append $found (printf "accelerator.mode is none with accelerator.vendor %s: the pod would get no card. Set accelerator.mode=devicePlugin or dra, or accelerator.vendor=none with an image for the processor." $cards.vendor) -}}
{{- end -}}
{{- if ne (int $cards.count) (int $ranks) -}}
{{- $found = append $found (printf "accelerator.count is %d, and parallelism.tensor × pipeline × data is %d × %d × %d = %d: one rank has one card. Set accelerator.count=%d." (int $cards.count) (int $size.tensor) (int $size.pipeline) (int $size.data) (int $ranks) (int $ranks)) -}}
{{- end -}}
{{- $asked := ternary $cards.dra.deviceClassName $cards.resource (eq $cards.mode "dra") -}}
{{- $key := ternary "accelerator.dra.deviceClassName" "accelerator.resource" (eq $cards.mode "dra") -}}
{{- if and (ne $cards.mode "none") (not $asked) -}}
{{- $found = append $found (printf "%s is empty: name it as a node does (kubectl describe nodes | grep -A12 Allocatable)." $key) -}}
{{- end -}}
{{- range $vendor := list "nvidia" "amd" "intel" -}}
{{- if and (ne $vendor $cards.vendor) (regexMatch (printf "(^|\\.)%s\\.com(/|$)" $vendor) $asked) -}}
{{- $found = append $found (printf "%s is %s and accelerator.vendor is %s: they name different vendors." $key $asked $cards.vendor) -}}
{{- end -}}
{{- end -}}
{{- $slice := regexMatch "(/mig-|^mig\\.|\\.shared$)" $asked -}}
{{- if and $slice (or (gt (int $cards.count) 1) (gt (int $ranks) 1)) -}}
{{- $found = append $found (printf "%s is %s, a slice or share of a card, and %d are asked for: ranks of one engine cannot talk to each other across slices. Set accelerator.count=1 and parallelism.tensor=1, or ask for whole cards." $key $asked (max (int $cards.count) (int $ranks))) -}}
{{- end -}}
{{- end -}}
{{- range $kind := list "requests" "limits" -}}
{{- range $name, $amount := get $.Values.resources $kind | default dict -}}
{{- if regexMatch "(nvidia|amd|intel|habana)\\.(com|ai)/|^deviceclass\\.resource" $name -}}
{{- $found = append $found (printf "resources.%s holds %s: cards are asked for by accelerator.resource and accelerator.count alone." $kind $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{- define "selfhost-model.check.memory" -}}
{{- $found := list -}}
{{- $limit := (.Values.resources.limits | default dict).memory -}}
{{- $request := (.Values.resources.requests | default dict).memory -}}
{{- if $limit -}}
{{- $most := include "selfhost-model.bytes" $limit | int64 -}}
{{- if and $request (gt (include "selfhost-model.bytes" $request | int64) $most) -}}
{{- $found = append $found (printf "resources.requests.memory is %s, above the limit of %s: Kubernetes refuses the pod." $request $limit) -}}
{{- end -}}
{{- if ge (include "selfhost-model.bytes" .Values.shm.size | int64) $most -}}
{{- $found = append $found (printf "shm.size is %s, and resources.limits.memory %s, which it counts against: nothing would be left for the engine." .Values.shm.size $limit) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{- define "selfhost-model.check.storage" -}}
{{- $found := list -}}
{{- $modes := .Values.weights.accessModes -}}
{{- $most := include "selfhost-model.mostReplicas" . | int -}}
{{- if and (gt $most 1) (not .Values.weights.existingClaim) (eq (include "selfhost-model.oneNode" .) "true") -}}
{{- $found = append $found (printf "up to %d replicas, and weights.accessModes is %s: the second one waits for the volume for ever, on another node or, with ReadWriteOncePod, on any. Set weights.accessModes={ReadWriteMany} with a class that offers it (kubectl get storageclass), or weights.existingClaim to such a claim." $most (join ", " $modes)) -}}
{{- end -}}
{{- if and .Values.rollout.surge (eq (include "selfhost-model.oneNode" .) "true") -}}
{{- $found = append $found (printf "rollout.surge is %d, and weights.accessModes is %s: a new pod on another node waits for the volume for ever, and the old one is kept until it is ready. Set rollout.surge=0, or weights.accessModes={ReadWriteMany} with a class that offers it." (int .Values.rollout.surge) (join ", " $modes)) -}}
{{- end -}}
{{- if and (has "ReadWriteOncePod" $modes) .Values.fetch.enabled -}}
{{- $found = append $found "weights.accessModes is ReadWriteOncePod with fetch.enabled: the fetch job and the engine's pod both mount the claim. Set weights.accessModes={ReadWriteOnce}." -}}
{{- end -}}
{{- if and (eq (join "," $modes) "ReadOnlyMany") (or .Values.fetch.enabled .Values.cache.persistent (not .Values.weights.readOnly)) -}}
{{- $found = append $found "weights.accessModes is ReadOnlyMany, and something writes there: set fetch.enabled=false, cache.persistent=false and weights.readOnly=true." -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{- define "selfhost-model.check.reasoning" -}}
{{- $found := list -}}
{{- $key := include "selfhost-model.modeKey" . -}}
{{- $modes := .Values.reasoning.modes -}}
{{- $id := .Values.model.id -}}
{{- if and $key (not (kindIs "map" (get $modes $key))) -}}
{{- $found = append $found (printf "reasoning.mode is %s, and these values know %s: selfhost render helm %s --reasoning %s" $key (include "selfhost-model.names" $modes | default "no mode") $id $key) -}}
{{- end -}}
{{- $wanted := int .Values.reasoning.budget_tokens | toString -}}
{{- range regexFindAll "budget[a-z_]*[^0-9a-z,}]{1,6}[0-9]+" (ternary (get $modes $key | toRawJson) "" (eq $key "budget")) -1 -}}
{{- $planned := regexFind "[0-9]+$" . -}}
{{- if ne $planned $wanted -}}
{{- $found = append $found (printf "reasoning.budget_tokens is %s, and reasoning.modes.budget was planned for %s: selfhost render helm %s --reasoning budget=%s" $wanted $planned $id $wanted) -}}
{{- end -}}
{{- end -}}
{{- toYaml (uniq $found) -}}
{{- end }}

{{- define "selfhost-model.check.precision" -}}
{{- $found := list -}}
{{- range $part, $option := dict "weights" "--precision" "kv" "--kv-cache" -}}
{{- $form := get $.Values.precision $part | default "" -}}
{{- $forms := get $.Values.precision.forms $part | default dict -}}
{{- if and $form (not (kindIs "slice" (get $forms $form))) -}}
{{- $found = append $found (printf "precision.%s is %s, and these values know %s: selfhost render helm %s %s %s" $part $form (include "selfhost-model.names" $forms | default "no form") $.Values.model.id $option $form) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}
