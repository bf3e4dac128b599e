{{/* Names and the web, without the addresses that hand out a cloud's credentials. The argument: ports. */}}
{{- define "selfhost-model.webEgress" -}}
- ports:
    - protocol: UDP
      port: 53
    - protocol: TCP
      port: 53
# A hub redirects to stores whose addresses change: no list of addresses would hold.
- ports:
    {{- range . }}
    - protocol: TCP
      port: {{ int . }}
    {{- end }}
  to:
    - namespaceSelector: {}
    - ipBlock:
        cidr: 0.0.0.0/0
        except: [169.254.0.0/16, 168.63.129.16/32, 100.100.100.200/32]
    - ipBlock:
        cidr: ::/0
        except: ["fd00:ec2::254/128", "fd00:ec2::23/128"]
{{- end }}

{{/* Ports that the fetch job speaks to: the web's, a mirror's and a proxy's own. */}}
{{- define "selfhost-model.fetchPorts" -}}
{{- $ports := list 80 443 -}}
{{- range $name, $value := merge (dict "endpoint" .Values.fetch.endpoint) .Values.fetch.env -}}
{{- $proxy := regexMatch "(?i)^(https?|all|ftp)_proxy$" $name -}}
{{- with regexFind (ternary "^([a-z0-9]+://)?[^/]*:[0-9]+(/|$)" "^https?://[^/]*:[0-9]+(/|$)" $proxy) (toString $value) -}}
{{- $ports = append $ports (regexFind "[0-9]+(/?$)" . | trimSuffix "/" | int) -}}
{{- end -}}
{{- end -}}
{{- $ports | uniq | toYaml -}}
{{- end }}

{{/* What is published: [{path, type}]. Metrics and the engine's other paths stay inside. */}}
{{- define "selfhost-model.paths" -}}
- {path: /v1, type: Prefix}
- {path: /health, type: Exact}
{{- end }}
