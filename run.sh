#!/bin/sh
# Builds the image, starts PostgreSQL, two API nodes, three executors, the dashboard, the witness and a receiver, migrates
# the database, waits until all of it is ready, and says where it is. Further arguments go to `docker compose up`:
#   ./run.sh --scale executor=5
set -eu
cd "$(dirname "$0")"

if ! docker compose version >/dev/null 2>&1; then
    echo "run.sh needs Docker with the compose plugin (docker compose version): https://docs.docker.com/compose/install/" >&2
    exit 1
fi
if ! docker info >/dev/null 2>&1; then
    echo "run.sh can't reach the Docker engine: start it, or check that you may use it (docker info)" >&2
    exit 1
fi

docker compose build --quiet crud-api
if ! docker compose up --detach --no-build --wait --wait-timeout "${WAIT:-180}" "$@"; then
    docker compose ps --all >&2
    echo "Not everything became ready. See: docker compose logs" >&2
    exit 1
fi

address=$(docker compose port ui 8000)
cat <<TOLD

On the Dot is ready: http://$address

  log in with the admin key, which was made on the first start:
    docker compose exec ui cat /run/onthedot/admin_key
  fire a webhook in five seconds, and see it arrive:
    docker compose exec ui sh -c 'ONTHEDOT_KEY=\$(cat /run/onthedot/admin_key) onthedot timer 5s http://waitecho:5003/echo'
    docker compose logs -f waitecho
  more executors:   docker compose up -d --no-recreate --scale executor=5
  stop:             docker compose down        (--volumes deletes the database too)
TOLD
