{{/* The start of every pod of this release. */}}
{{- define "selfhost-model.podBase" -}}
serviceAccountName: {{ include "selfhost-model.serviceAccountName" . | quote }}
automountServiceAccountToken: false
# Variables such as VLLM_PORT=tcp://…, made for a Service of that name, stop vLLM.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{- define "selfhost-model.tolerations" -}}
{{- with concat .Values.accelerator.tolerations .Values.tolerations }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- define "selfhost-model.affinity" -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else if .Values.accelerator.nodeLabels -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          {{- toYaml .Values.accelerator.nodeLabels | nindent 10 }}
{{- end -}}
{{- end }}

{{- define "selfhost-model.topologySpread" -}}
{{- if .Values.topologySpreadConstraints -}}
{{- toYaml .Values.topologySpreadConstraints -}}
{{- else if gt (include "selfhost-model.mostReplicas" . | int) 1 -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "selfhost-model.engineSelector" . | nindent 6 }}
{{- end -}}
{{- end }}

{{/* A private certificate authority: variables, mount, volume. */}}
{{- define "selfhost-model.caVariables" -}}
{{- if .Values.ca.existingConfigMap -}}
REQUESTS_CA_BUNDLE: /etc/selfhost/ca/ca.crt
SSL_CERT_FILE: /etc/selfhost/ca/ca.crt
{{- end -}}
{{- end }}

{{- define "selfhost-model.caMount" -}}
{{- if .Values.ca.existingConfigMap -}}
- name: ca
  mountPath: /etc/selfhost/ca
  readOnly: true
{{- end }}
{{- end }}

{{- define "selfhost-model.caVolume" -}}
{{- with .Values.ca.existingConfigMap -}}
- name: ca
  configMap:
    name: {{ . | quote }}
    items:
      - key: {{ $.Values.ca.existingConfigMapKey | quote }}
        path: ca.crt
{{- end }}
{{- end }}

{{- define "selfhost-model.weightsVolume" -}}
- name: weights
  persistentVolumeClaim:
    claimName: {{ include "selfhost-model.claimName" . | quote }}
{{- end }}

{{/* null: a folder for this model and revision. "": the volume itself. */}}
{{- define "selfhost-model.weightsSubPath" -}}
{{- if kindIs "string" .Values.weights.subPath -}}
{{- .Values.weights.subPath -}}
{{- else -}}
{{- printf "models/%s/%s" (include "selfhost-model.slug" (replace "/" "--" .Values.model.id))
      (include "selfhost-model.slug" .Values.model.revision) -}}
{{- end -}}
{{- end }}

{{/* null: a folder for this image and this kind of card. */}}
{{- define "selfhost-model.cacheSubPath" -}}
{{- if kindIs "string" .Values.cache.subPath -}}
{{- .Values.cache.subPath -}}
{{- else -}}
{{- $image := printf "%s:%s" (base .Values.image.repository) (include "selfhost-model.tag" .) -}}
{{- printf "cache/%s" (include "selfhost-model.slug" (printf "%s-%s" $image .Values.cache.arch)) -}}
{{- end -}}
{{- end }}

{{/* As a folder is called: selfhost's own names for weights and caches. */}}
{{- define "selfhost-model.slug" -}}
{{- regexReplaceAll "[^A-Za-z0-9_.-]+" . "-" | trimAll "-." | lower -}}
{{- end }}

{{/* Which weights are wanted, as the fetch job writes them into the marker and the engine's pod waits for them. */}}
{{- define "selfhost-model.wanted" -}}
{{- dict "model" .Values.model.id "revision" .Values.model.revision "include" .Values.fetch.include | toRawJson -}}
{{- end }}

{{/* A few bytes of Python in an image that would otherwise see every card of its node. */}}
{{- define "selfhost-model.noCards" -}}
- name: NVIDIA_VISIBLE_DEVICES
  value: void
{{- end }}

{{/* (dict "root" $ "file" "files/wait.py" "arguments" (list "/weights")) */}}
{{- define "selfhost-model.python" -}}
command: [python3, -c]
args:
  - |
    {{- .root.Files.Get .file | trim | nindent 4 }}
{{- range .arguments }}
  - {{ . }}
{{- end }}
{{- end }}
