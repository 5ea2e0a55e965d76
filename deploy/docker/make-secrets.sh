#!/bin/sh
# Makes the admin key and the database password, once, as files in the volume that the services share.
# A value in the environment (ONTHEDOT_ADMIN_KEY, POSTGRES_PASSWORD) is taken instead of a random one.
# `make-secrets.sh new-admin-key` makes another admin key: restart the API nodes afterwards, they revoke the old one.
set -eu
umask 027
folder=/run/onthedot

write() { # FILE VALUE PREFIX
    if [ -n "$2" ]; then
        printf '%s\n' "$2" > "$folder/$1.new"
    elif [ ! -s "$folder/$1" ]; then
        printf '%s%s\n' "$3" "$(python3 -c 'import secrets; print(secrets.token_urlsafe(32))')" > "$folder/$1.new"
    else
        return 0
    fi
    mv "$folder/$1.new" "$folder/$1" # whole or not at all: another container may be reading it
}

if [ "${1:-}" = new-admin-key ]; then
    rm -f "$folder/admin_key"
fi
write admin_key "${ONTHEDOT_ADMIN_KEY:-}" otd_
write postgres_password "${POSTGRES_PASSWORD:-}" ""
