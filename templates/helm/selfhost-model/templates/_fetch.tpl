{{/* Whether two nodes cannot mount the weights at once. */}}
{{- define "selfhost-model.oneNode" -}}
{{- not (or (has "ReadWriteMany" .Values.weights.accessModes) (has "ReadOnlyMany" .Values.weights.accessModes)) -}}
{{- end }}

{{/* A job is immutable: everything that can change is in its spec, and its name holds the spec's hash. */}}
{{- define "selfhost-model.fetchSpec" -}}
backoffLimit: {{ int .Values.fetch.backoffLimit }}
podFailurePolicy:
  rules:
    # A node that is drained uses up no retry.
    - action: Ignore
      onPodConditions:
        - type: DisruptionTarget
          status: "True"
    # fetch.py ends so where no retry mends it: a gated model, a typo, no room.
    - action: FailJob
      onExitCodes:
        containerName: fetch
        operator: In
        values: [78]
template:
  metadata:
    labels:
      {{- include "selfhost-model.selector" . | nindent 6 }}
      app.kubernetes.io/component: fetch
  spec:
    restartPolicy: Never
    # Counted from the start on a node, not from the wait for one; 15 minutes for the image.
    activeDeadlineSeconds: {{ add (int .Values.fetch.budgetSeconds) 900 }}
    {{- include "selfhost-model.podBase" . | nindent 4 }}
    {{- with .Values.priorityClassName }}
    priorityClassName: {{ . | quote }}
    {{- end }}
    {{- with .Values.nodeSelector }}
    nodeSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if eq (include "selfhost-model.oneNode" .) "true" }}
    # Only one node at a time can mount the claim. On another node than the engine's, this pod and that one would wait
    # for the volume for ever: it goes where the engine's pod is, which waits for the weights there.
    affinity:
      podAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "selfhost-model.engineSelector" . | nindent 16 }}
    {{- end }}
    {{- with include "selfhost-model.tolerations" . }}
    tolerations:
      {{- . | nindent 6 }}
    {{- end }}
    containers:
      - name: fetch
        image: {{ include "selfhost-model.image" . | quote }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        {{- include "selfhost-model.python" (dict "root" . "file" "files/fetch.py" "arguments" (list "/weights")) | nindent 8 }}
        env:
          {{- include "selfhost-model.fetchEnv" . | trim | nindent 10 }}
        resources:
          {{- toYaml .Values.fetch.resources | nindent 10 }}
        securityContext:
          {{- toYaml .Values.securityContext | nindent 10 }}
        terminationMessagePolicy: FallbackToLogsOnError
        volumeMounts:
          - name: weights
            mountPath: /weights
            {{- with include "selfhost-model.weightsSubPath" . }}
            subPath: {{ . | quote }}
            {{- end }}
          - name: tmp
            mountPath: /tmp
          {{- with include "selfhost-model.caMount" . }}
          {{- . | nindent 10 }}
          {{- end }}
    volumes:
      {{- include "selfhost-model.weightsVolume" . | nindent 6 }}
      - name: tmp
        emptyDir: {}
      {{- with include "selfhost-model.caVolume" . }}
      {{- . | nindent 6 }}
      {{- end }}
{{- end }}

{{- define "selfhost-model.fetchEnv" -}}
{{- $own := dict
    "HOME" "/tmp"
    "HF_HUB_DISABLE_TELEMETRY" "1"
    "HF_XET_CHUNK_CACHE_SIZE_BYTES" "0"
    "NVIDIA_VISIBLE_DEVICES" "void"
    "SELFHOST_WANTED" (include "selfhost-model.wanted" .)
    "USER" "selfhost" -}}
{{- with .Values.fetch.endpoint }}{{ $_ := set $own "HF_ENDPOINT" . }}{{ end -}}
{{- with include "selfhost-model.caVariables" . | fromYaml }}{{ $own = merge . $own }}{{ end -}}
{{- range $name, $value := merge $own .Values.fetch.env }}
- name: {{ $name | quote }}
  value: {{ include "selfhost-model.literal" $value | quote }}
{{- end }}
{{- with .Values.fetch.existingSecret }}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . | quote }}
      key: {{ $.Values.fetch.existingSecretKey | quote }}
{{- end }}
{{- end }}

{{- define "selfhost-model.fetchName" -}}
{{- printf "%s-fetch-%s" (include "selfhost-model.fullname" .)
      (include "selfhost-model.hash" (include "selfhost-model.fetchSpec" .)) -}}
{{- end }}
