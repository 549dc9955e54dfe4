#!/bin/bash
# runc for a Docker on a machine without CAP_SYS_RESOURCE: for a privileged container Docker asks for every
# capability that the kernel knows, and runc refuses one outside our bounding set ("unable to apply caps").
for ((i = 1; i <= $#; i++)); do
  next=$((i + 1))
  case ${!i} in
  --bundle | -b) spec=${!next}/config.json capabilities=.process.capabilities ;;
  --process | -p) spec=${!next} capabilities=.capabilities ;;
  esac
done
if [ -n "${spec:-}" ] && grep -qs CAP_SYS_RESOURCE "$spec"; then
  allowed=$(jq -c "($capabilities | select(.)) |= map_values(. - [\"CAP_SYS_RESOURCE\"])" "$spec")
  printf '%s' "$allowed" >"$spec"
fi
exec /usr/sbin/runc "$@"
