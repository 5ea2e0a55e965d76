#!/bin/sh
# As root: make the cluster once, with the role, password and database of the environment; then serve as `postgres`.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    password=${POSTGRES_PASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}
    printf '%s\n' "$password" > /tmp/password
    chown postgres /tmp/password
    setpriv --reuid=postgres --regid=postgres --init-groups \
        initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust \
        --encoding=UTF8 --no-locale >/dev/null
    rm /tmp/password
    printf 'host all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
    if [ "$POSTGRES_DB" != postgres ]; then
        printf 'CREATE DATABASE "%s";\n' "$POSTGRES_DB" |
            setpriv --reuid=postgres --regid=postgres --init-groups postgres --single -D "$PGDATA" postgres >/dev/null
    fi
fi
install -d -o postgres -g postgres /var/run/postgresql
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -c listen_addresses='*'
