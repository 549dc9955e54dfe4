{{/* Name of the installation's objects: at most 52 characters, so that suffixes fit. */}}
{{- define "omni.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains "omni-operator" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-omni-operator" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Labels that select the operator's pods. Frozen: a Deployment's selector cannot be changed. */}}
{{- define "omni.selectorLabels" -}}
app.kubernetes.io/name: omni-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "omni.labels" -}}
app.kubernetes.io/name: omni-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* A full image reference: (dict "root" $ "reference" REFERENCE). */}}
{{- define "omni.image" -}}
{{- $reference := .reference -}}
{{- $name := last (splitList "/" $reference) -}}
{{- if not (or (contains ":" $name) (contains "@" $name)) -}}
{{- $reference = printf "%s:%s" $reference .root.Chart.AppVersion -}}
{{- end -}}
{{- with .root.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $reference -}}
{{- end }}

{{/* Copy of a profile or pool with its image made a full reference: (dict "root" $ "value" VALUE "image" REFERENCE). */}}
{{- define "omni.withImage" -}}
{{- $copy := omit .value "image" -}}
{{- with .image }}{{ $_ := set $copy "image" (include "omni.image" (dict "root" $.root "reference" .)) }}{{ end -}}
{{- toJson $copy -}}
{{- end }}

{{/* The AcceleratorCatalog that the operator reads. */}}
{{- define "omni.accelerators" -}}
{{- $profiles := dict -}}
{{- range $name, $profile := .Values.accelerators.profiles -}}
{{- $image := $profile.image | default (get $.Values.images.runtime $profile.vendor) -}}
{{- $_ := set $profiles $name (include "omni.withImage" (dict "root" $ "value" $profile "image" $image) | fromJson) -}}
{{- end -}}
{{- $pools := dict -}}
{{- range $name, $pool := .Values.accelerators.pools -}}
{{- if not (hasKey $profiles $pool.profile) -}}
{{- fail (printf "accelerators.pools.%s: profile %q is not in accelerators.profiles; known: %s" $name $pool.profile (keys $profiles | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $profile := get $profiles $pool.profile -}}
{{- $resource := $pool.resource | default $profile.resource -}}
{{- if and (ne $profile.vendor "cpu") (not $resource) -}}
{{- fail (printf "accelerators.pools.%s: vendor %q needs a resource, for example \"nvidia.com/gpu\"" $name $profile.vendor) -}}
{{- else if and (eq $profile.vendor "cpu") $resource -}}
{{- fail (printf "accelerators.pools.%s: vendor \"cpu\" has no devices, but its resource is %q; remove it" $name $resource) -}}
{{- end -}}
{{- $_ := set $pools $name (include "omni.withImage" (dict "root" $ "value" $pool "image" $pool.image) | fromJson) -}}
{{- end -}}
{{- dict "profiles" $profiles "pools" $pools "allowFakeEngine" .Values.accelerators.allowFakeEngine | toJson -}}
{{- end }}

{{/* Names of the pools that no stage may use, as neither they nor their profiles have an image. */}}
{{- define "omni.poolsWithoutImage" -}}
{{- $catalog := include "omni.accelerators" . | fromJson -}}
{{- $names := list -}}
{{- range $name, $pool := $catalog.pools -}}
{{- if not (or $pool.image (get $catalog.profiles $pool.profile).image) }}{{ $names = append $names $name }}{{ end -}}
{{- end -}}
{{- $names | sortAlpha | join "," -}}
{{- end }}

{{/* What the operator is told at start: the file that omni_operator.settings reads. */}}
{{- define "omni.config" -}}
accelerators:
  {{- include "omni.accelerators" . | fromJson | toYaml | nindent 2 }}
frontend:
  image: {{ include "omni.image" (dict "root" . "reference" .Values.images.frontend) | quote }}
  {{- toYaml .Values.frontend.resources | nindent 2 }}
masters:
  {{- toYaml .Values.masters.resources | nindent 2 }}
images:
  pullPolicy: {{ .Values.images.pullPolicy }}
  pullSecrets: {{ toJson .Values.images.pullSecrets }}
watchNamespaces: {{ toJson .Values.operator.watchNamespaces }}
workers: {{ .Values.operator.workers }}
lease:
  name: {{ include "omni.fullname" . }}
log:
  {{- toYaml .Values.operator.log | nindent 2 }}
{{- end }}
