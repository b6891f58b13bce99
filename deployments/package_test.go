package deployments

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// standIn takes the program's place in packages where only their making and installing is tried.
const standIn = `package main

import ("fmt"; "os")

func main() { fmt.Println(".TH INTUMWA 1\n#", os.Args[1:]) }
`

// packs makes a release of a checkout with a program, and returns the folder.
func packs(t *testing.T, checkout, version, program, umask string) string {
	t.Helper()
	for _, tool := range []string{"nfpm", "cyclonedx-gomod"} {
		testenv.Tool(t, tool)
	}
	out := t.TempDir()
	command := exec.CommandContext(t.Context(), testenv.Tool(t, "bash"), "-c",
		`umask "$1"; exec scripts/release.sh "$2" "$3" "$4"`, "release", umask, version, program, out)
	command.Dir = checkout
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("release.sh: %v\n%s", err, output)
	}
	return out
}

// same compares the releases in two folders byte for byte. SHA256SUMS lists all other files.
func same(t *testing.T, one, other string) {
	t.Helper()
	names := files(t, one+"/*")
	if len(names) != 5 || len(files(t, other+"/*")) != 5 {
		t.Errorf("a release has %v", names)
	}
	for _, path := range names {
		a, err := os.ReadFile(path)
		b, otherErr := os.ReadFile(filepath.Join(other, filepath.Base(path)))
		if err != nil || otherErr != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs between two builds (%v, %v)", filepath.Base(path), err, otherErr)
		}
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "SHA256SUMS")
	check.Dir = one
	if output, err := check.CombinedOutput(); err != nil || bytes.Count(output, []byte(": OK\n")) != 4 {
		t.Errorf("SHA256SUMS: %v %s", err, output)
	}
}

// built compiles a program.
func built(t *testing.T, dir, version, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "intumwa")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-X main.version="+version, "-o",
		program, pkg)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return program
}

// TestPackages: two packings of one commit are equal, and the packages can be installed, upgraded, removed and purged.
// TestRelease does it with the real program.
func TestPackages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": standIn, "go.mod": "module stand-in\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := built(t, dir, "", ".")
	first := packs(t, "..", "v1.2.3", program, "022")
	same(t, first, packs(t, "..", "v1.2.3", program, "077"))
	installed(t, first, packs(t, "..", "v1.2.3-4-gabcdef0", program, "022"), false)
}

// TestRelease: two builds of one commit in different folders are equal; the SBOM and the notices have every module that
// is linked, and the installed program runs.
func TestRelease(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var releases []string
	var program string
	for range 2 {
		checkout := filepath.Join(t.TempDir(), "checkout")
		if output, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-hardlinks", "..",
			checkout).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v %s", err, output)
		}
		tools, err := filepath.Abs("../.bin")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(tools, filepath.Join(checkout, ".bin")); err != nil {
			t.Fatal(err)
		}
		program = built(t, checkout, "v1.2.3", "./cmd/intumwa")
		releases = append(releases, packs(t, checkout, "v1.2.3", program, "022"))
	}
	same(t, releases[0], releases[1])
	information, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, about, _ := strings.Cut(string(information), "\n")
	build, err := debug.ParseBuildInfo(strings.ReplaceAll(about, "\n\t", "\n")[1:])
	if err != nil || len(build.Deps) < 20 {
		t.Fatalf("go version -m: %v, %v", err, build)
	}
	var sbom struct {
		Components []struct{ Name, Version string }
	}
	raw, err := os.ReadFile(files(t, releases[0]+"/*.cdx.json")[0])
	if err == nil {
		err = json.Unmarshal(raw, &sbom)
	}
	notices, noticesErr := exec.CommandContext(t.Context(), "bash", "../scripts/notices.sh").Output()
	if err != nil || noticesErr != nil {
		t.Fatal(err, noticesErr)
	}
	for _, module := range build.Deps {
		if !slices.Contains(sbom.Components, struct{ Name, Version string }{module.Path, module.Version}) {
			t.Errorf("the SBOM lacks %s %s", module.Path, module.Version)
		}
		if !bytes.Contains(notices, []byte("\n"+module.Path+" "+module.Version+"\n")) {
			t.Errorf("the notices lack %s %s", module.Path, module.Version)
		}
	}
	if modules := bytes.Count(notices, []byte("\n================")); modules != len(build.Deps)+1 { // and Go
		t.Errorf("the notices have %d parts, and %d modules are linked", modules, len(build.Deps))
	}
	installed(t, releases[0], packs(t, "..", "v1.2.3-4-gabcdef0", program, "022"), true)
}

// fenced returns a block of the manual that has some text, for a machine without a service manager and without other
// packages.
func fenced(t *testing.T, page, has string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	pieces := strings.Split(string(text), "```\n") // text and blocks in turn
	for i := 1; i < len(pieces); i += 2 {
		if strings.Contains(pieces[i], has) {
			done := regexp.MustCompile(
				`(?m)^ *(apt-get|nano|intumwa config check|systemctl (re|daemon-re)).*\n`).ReplaceAllString(pieces[i], "")
			return strings.ReplaceAll(done, "systemctl ", "systemctl --root=/ ")
		}
	}
	t.Fatalf("docs/%s has no block with %s", page, has)
	return ""
}

// installed runs testdata/install.sh on a copy of this machine that ends with it.
func installed(t *testing.T, first, second string, runs bool) {
	t.Helper()
	for _, tool := range []string{"dpkg", "rpm", "promtool", "amtool"} {
		testenv.Tool(t, tool)
	}
	if os.Geteuid() != 0 {
		testenv.Lacks(t, "namespaces need root: the packages cannot be installed")
	}
	dir := t.TempDir()
	script := `mount -t tmpfs tmpfs "$1" && mkdir "$1"/upper "$1"/work "$1"/root &&
		mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root" && cd "$1/root" &&
		mkdir -p release && cp "$2"/*.deb release/first.deb && cp "$3"/*.deb release/second.deb &&
		cp "$2"/*.rpm release/first.rpm && cp "$3"/*.rpm release/second.rpm && tar -xzf "$2"/*.tar.gz -C release &&
		mount -t proc proc proc && mount --rbind /dev dev && mount -t tmpfs tmpfs run &&
		exec chroot . bash -euo pipefail -c "$4" install "$5"`
	steps, err := os.ReadFile("testdata/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	word := "stand-in"
	if runs {
		word = "real"
	}
	command := exec.CommandContext(t.Context(), testenv.Tool(t, "unshare"), "--mount", "--pid", "--fork", "--kill-child",
		testenv.Tool(t, "bash"), "-c", script, "machine",
		dir, first, second, string(steps), word)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	for name, has := range map[string][2]string{"MONITORING": {"monitoring.md", "promtool check config"},
		"ARCHIVE": {"machines.md", "deployments/package/postinstall"},
		"SAVE":    {"upgrade.md", "apt-get install ./intumwa_*.deb"}, "SAVE_ARCHIVE": {"upgrade.md", "cmp -s bin/intumwa"},
		"BACK":         {"upgrade.md", "--allow-downgrades"},
		"BACK_ARCHIVE": {"upgrade.md", "install -m 0755 /usr/local/bin/intumwa.before"},
		"TO_PACKAGE":   {"upgrade.md", "systemctl disable"}} {
		command.Env = append(command.Env, name+"="+fenced(t, has[0], has[1]))
	}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestPackageConfiguration: the configuration that a package installs has one mistake: it names no carrier.
func TestPackageConfiguration(t *testing.T) {
	secrets := t.TempDir()
	for _, name := range []string{"database", "encryption_key", "otp_key"} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(strings.Repeat("0f", 32)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile("package/intumwa.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asInstalled := strings.ReplaceAll(string(raw), "/etc/intumwa/secrets", secrets)
	if problems, _ := checked(t, asInstalled); len(problems) != 1 || !strings.Contains(problems[0], "carriers") {
		t.Errorf("as installed: %v", problems)
	}
	for _, name := range []string{"mail", "lumitel-1"} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edited := strings.NewReplacer("carriers: []", "carriers:", "\n# dashboard:", "\ndashboard:", "\n# mail:", "\nmail:",
		"\n# - name", "\n- name", "\n#   ", "\n  ").Replace(asInstalled)
	if problems, warnings := checked(t, edited); len(problems)+len(warnings) > 0 {
		t.Errorf("edited: %v %v\n%s", problems, warnings, edited)
	}
}
