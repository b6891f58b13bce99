#!/usr/bin/env bash
# Fetches axe-core at the version below into .bin, once, and prints its path. The
# dashboard's tests check every page with it.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.14.1
sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
file=.bin/axe-core-$version.js

if [ ! -s "$file" ]; then
	scripts/package.sh need npm npm >&2
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	(cd "$folder" && npm pack --silent "axe-core@$version" >/dev/null)
	echo "$sha512  $folder/axe-core-$version.tgz" | sha512sum --check --quiet >&2
	tar -xzf "$folder/axe-core-$version.tgz" -C "$folder" package/axe.min.js
	mkdir -p .bin
	mv "$folder/package/axe.min.js" "$file"
fi
printf '%s\n' "$PWD/$file"
