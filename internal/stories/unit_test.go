package stories

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// manager is a story's own systemd: process 1 in new namespaces, with only the story's units. It shares the story's
// network.
type manager struct {
	w    *world
	root string // its units and logs
	pid  string // outside
}

// bootScript prepares systemd in new namespaces: its units, the program and its configuration where the unit expects
// them, and the story's control groups. It leaves no trace outside.
const bootScript = `
set -e
root=$1
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /usr/local/bin
mkdir -p /etc/intumwa
mount -t tmpfs -o mode=755 tmpfs /etc/intumwa
install -m 755 "$root/intumwa" /usr/local/bin/intumwa
install -m 644 "$root/intumwa.yaml" /etc/intumwa/intumwa.yaml
mkdir /run/units
cp "$root"/units/* /run/units/
if [ -e /sys/fs/cgroup/systemd ]; then
	mount -t tmpfs tmpfs /sys/fs/cgroup
	mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
	mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
export container=story SYSTEMD_UNIT_PATH=/run/units
exec /lib/systemd/systemd --system --unit=story.target --log-target=console --show-status=0
`

// boots starts a systemd with an unmodified unit of deployments/systemd. It needs root; without it the story is
// skipped, or fails with CI=true.
func (w *world) boots(unit, program, config string) *manager {
	w.t.Helper()
	if os.Geteuid() != 0 {
		testenv.Lacks(w.t, "namespaces and control groups need root: the unit cannot be run")
	}
	m := &manager{w: w, root: w.t.TempDir()}
	for folder := m.root; folder != "/" && folder != os.TempDir(); folder = filepath.Dir(folder) {
		_ = os.Chmod(folder, 0o755)
	}
	w.copies(program, filepath.Join(m.root, "intumwa"))
	w.copies(config, filepath.Join(m.root, "intumwa.yaml"))
	units := filepath.Join(m.root, "units")
	if err := os.Mkdir(units, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.copies(filepath.Join("../../deployments/systemd", unit), filepath.Join(units, unit))
	for name, text := range map[string]string{
		"story.target":    "[Unit]\nWants=" + unit + "\n",
		"sysinit.target":  "[Unit]\nDefaultDependencies=no\n", // required by every unit
		"basic.target":    "[Unit]\nDefaultDependencies=no\n",
		"shutdown.target": "[Unit]\nDefaultDependencies=no\n",
		"system.slice":    "[Unit]\nDefaultDependencies=no\n",
	} {
		if err := os.WriteFile(filepath.Join(units, name), []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	groups := w.controlGroups()
	log, err := os.Create(filepath.Join(w.dir, "systemd.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	// The shell joins the story's control groups before it becomes unshare.
	enter := `for group in $GROUPS_OF_STORY; do echo $$ >"$group/cgroup.procs"; done; exec "$@"`
	boot := exec.Command(testenv.Tool(w.t, "bash"), "-c", enter, "boot", testenv.Tool(w.t, "unshare"),
		"--fork", "--pid", "--kill-child", "--mount", "--uts", "--ipc", "--cgroup", "bash", "-c", bootScript, "boot", m.root)
	boot.Env = append(rig.Environment(), "GROUPS_OF_STORY="+strings.Join(groups, " "))
	boot.Stdout, boot.Stderr = log, log
	boot.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := boot.Start(); err != nil {
		w.t.Fatal(err)
	}
	dismiss := guard(w, boot.Process.Pid)
	w.t.Cleanup(func() {
		_ = boot.Process.Kill() // and with it all its processes
		_ = boot.Wait()
		dismiss()
		for _, group := range groups {
			w.comesTrue(10*time.Second, func() bool { removeGroups(group); _, err := os.Stat(group); return os.IsNotExist(err) })
		}
	})
	w.eventually(10*time.Second, "systemd is there", func() bool {
		children, err := os.ReadFile("/proc/" + strconv.Itoa(boot.Process.Pid) + "/task/" + strconv.Itoa(boot.Process.Pid) +
			"/children")
		if m.pid = strings.TrimSpace(string(children)); err != nil || m.pid == "" {
			return false
		}
		name, err := os.ReadFile("/proc/" + m.pid + "/comm")
		return err == nil && strings.TrimSpace(string(name)) == "systemd"
	})
	return m
}

func (w *world) copies(from, to string) {
	w.t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o755)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// controlGroups makes the control groups for systemd.
func (w *world) controlGroups() (groups []string) {
	w.t.Helper()
	trees := []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"}
	if _, err := os.Stat(trees[0]); err != nil {
		trees = []string{"/sys/fs/cgroup"}
	}
	for _, tree := range trees {
		group := filepath.Join(tree, "intumwa-story-"+word())
		if err := os.Mkdir(group, 0o755); err != nil {
			testenv.Lacks(w.t, "no control group can be made ("+err.Error()+"): the unit cannot be run")
		}
		groups = append(groups, group)
	}
	return groups
}

// removeGroups removes a group and its children, which must be empty.
func removeGroups(group string) {
	entries, _ := os.ReadDir(group) // it may be gone
	for _, entry := range entries {
		if entry.IsDir() {
			removeGroups(filepath.Join(group, entry.Name()))
		}
	}
	_ = os.Remove(group)
}

// systemctl runs systemctl on the story's systemd.
func (m *manager) systemctl(args ...string) (string, error) {
	m.w.t.Helper()
	ctx, cancel := context.WithTimeout(m.w.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, testenv.Tool(m.w.t, "nsenter"),
		append([]string{"--target", m.pid, "--mount", "--pid", "--cgroup", "systemctl"}, args...)...)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// shows is a property of a unit.
func (m *manager) shows(unit, property string) string {
	m.w.t.Helper()
	output, err := m.systemctl("show", "--value", "--property", property, unit)
	if err != nil {
		m.w.t.Fatalf("systemctl show %s: %v %s", property, err, output)
	}
	return output
}

// systemd runs the unmodified unit in its sandbox. A killed gateway restarts, and a stopped one ends cleanly.
func TestUnderSystemd(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const unit = "intumwa.service"
	// Its stores listen on TCP: the unit's private /tmp has no sockets of theirs.
	w := play(t, scene{standby: true, carriers: []carrier{steady()}, dark: true})
	program := release.get(t) // the race detector maps memory that the sandbox forbids
	w.migrates(program)       // the unit leaves it to the upgrade
	m := w.boots(unit, program, w.gateway.config)
	defer func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(w.dir, "systemd.log"))
			output, _ := m.systemctl("status", "--no-pager", "-l", unit)
			t.Logf("systemd:\n%s\n%s", log[max(0, len(log)-3000):], output)
		}
	}()
	w.eventually(readyWithin, "the unit is ready", w.gateway.isReady)
	if started := time.Unix(int64(w.gateway.metric("process_start_time_seconds")), 0); time.Since(
		started).Abs() > time.Hour {
		t.Errorf("in its sandbox the process cannot tell when it started: %s", started) // nor somaxconn, for its listeners
	}
	w.bound()
	shop := w.company("Isoko", 1_000_000)
	w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
	does := func(args ...string) {
		t.Helper()
		if output, err := m.systemctl(args...); err != nil {
			t.Fatalf("systemctl %v: %v %s", args, err, output)
		}
	}
	does("kill", "--signal=KILL", "--kill-who=main", unit)
	w.eventually(readyWithin, "it was started again", func() bool {
		return m.shows(unit, "NRestarts") == "1" &&
			w.gateway.isReady()
	})
	w.becomes(shop.sends(w.number(), "Amahoro twese").ID, "sent")
	does("stop", "intumwa*") // as in the manual
	if result, state := m.shows(unit, "Result"), m.shows(unit, "ActiveState"); result != "success" || state != "inactive" {
		t.Errorf("after the stop it is %s with result %s", state, result)
	}
	does("start", "--all", "intumwa*")
	w.eventually(readyWithin, "it is ready again", w.gateway.isReady)
	w.becomes(shop.sends(w.number(), "Amahoro twese").ID, "sent")
	w.audited()
	does("stop", unit)
	log, err := os.ReadFile(filepath.Join(w.dir, "systemd.log"))
	if err != nil || bytes.Contains(log, []byte("Failed to")) {
		t.Errorf("systemd complains (%v):\n%s", err, log)
	}
}
