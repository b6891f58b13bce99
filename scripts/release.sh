#!/usr/bin/env bash
# Packs a release: an archive, a .deb, an .rpm, an SBOM (CycloneDX) and SHA256SUMS. The same commit gives the same
# bytes: times are the commit's, and files are in order.
#
#   release.sh VERSION PROGRAM FOLDER   FOLDER gets the files
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 program=$(realpath "$2") out=$(realpath "$3")
export LC_ALL=C TZ=UTC
umask 022

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
ARCH=$(go env GOARCH)
# v1.2.3-rc.1 is before 1.2.3, and 12 commits after v1.2.3 is after it.
PACKAGE_VERSION=$(sed -E 's/^v([0-9])/\1/; t; s/^/0~/' <<<"$version" | sed -E 's/-([0-9]+)-g([0-9a-f]+)/+\1.\2/; s/-dirty$/+dirty/; s/-/~/g')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
export SOURCE_DATE_EPOCH ARCH PACKAGE_VERSION

# The path of a pinned Go program of internal/testenv/tools.txt.
tool() {
	local source
	read -r _ source _ < <(grep "^$1 " internal/testenv/tools.txt)
	[ -x ".bin/$1-${source##*@}" ] || scripts/tools.sh >&2
	echo "$PWD/.bin/$1-${source##*@}"
}
nfpm=$(tool nfpm) sbom=$(tool cyclonedx-gomod)

files() { # what git has of the folders, without tests
	git ls-files -- "$@" | grep -v '_test\.go$'
}

# The archive: the repository's folders, and what is generated.
name=intumwa-$version-linux-$ARCH
archive=$work/archive/$name
mkdir -p "$archive/bin"
while read -r file; do
	if [ -L "$file" ]; then # the chart's alert rules are those of Prometheus
		mkdir -p "$archive/${file%/*}" && cp -P "$file" "$archive/$file"
		continue
	fi
	install -D -m "$([ -x "$file" ] && echo 755 || echo 644)" "$file" "$archive/$file"
done < <(files ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md deployments docs)
install -m 755 "$program" "$archive/bin/intumwa"
scripts/notices.sh >"$archive/THIRD-PARTY-NOTICES"
mkdir "$archive/share"
"$program" describe man >"$archive/share/intumwa.1"
"$program" describe bash >"$archive/share/intumwa.bash"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -C "$work/archive" -c "$name" | gzip -n >"$out/$name.tar.gz"

# The packages: the same files in the distribution's places. Units name /usr/bin.
put() {
	install -D -m "$1" "$2" "$root/$3"
}
share=$root/usr/share
put 755 "$program" usr/bin/intumwa
put 755 deployments/backup/intumwa-backup usr/bin/intumwa-backup
for unit in deployments/systemd/*; do
	put 644 "$unit" "usr/lib/systemd/system/${unit##*/}"
done
sed -i 's,/usr/local/bin/,/usr/bin/,g; s,^# /etc/systemd/system/,# /usr/lib/systemd/system/,' "$root"/usr/lib/systemd/system/*
put 644 "$archive/share/intumwa.bash" usr/share/bash-completion/completions/intumwa
put 644 "$archive/share/intumwa.1" usr/share/man/man1/intumwa.1
gzip -9n "$share/man/man1/intumwa.1"
while read -r file; do
	put 644 "$file" "usr/share/intumwa/${file#deployments/}"
done < <(files deployments/prometheus/rules deployments/prometheus/*.yaml deployments/grafana deployments/proxy)
while read -r file; do
	put 644 "$file" "usr/share/doc/intumwa/${file#docs/}"
done < <(files docs)
for file in ARCHITECTURE.md CHANGELOG.md "$archive/THIRD-PARTY-NOTICES"; do
	put 644 "$file" "usr/share/doc/intumwa/${file##*/}"
done
sed -i 's,rules/\*,/usr/share/intumwa/prometheus/&,' "$share/intumwa/prometheus/prometheus.yaml"
put 644 LICENSE usr/share/doc/intumwa/copyright
put 644 configs/intumwa.sample.yaml usr/share/doc/intumwa/intumwa.sample.yaml
cp -R deployments/package "$work/package"
for kind in deb rpm; do
	(cd "$work" && "$nfpm" package --config package/nfpm.yaml --packager "$kind" --target "$out" >log) || { cat "$work/log" >&2; exit 1; }
done

"$sbom" bin -json -std -noserial -notimestamp -version "$version" -output "$out/$name.cdx.json" "$program" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }

cd "$out"
sha256sum "$name.tar.gz" "$name.cdx.json" "intumwa_${PACKAGE_VERSION}_$ARCH.deb" "intumwa-$PACKAGE_VERSION"-1.*.rpm | tee SHA256SUMS
