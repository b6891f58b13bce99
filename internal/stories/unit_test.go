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

// manager is a systemd of a story's own: process 1 in namespaces of its own, with nothing to run but what it is given. It
// shares the network with the story.
type manager struct {
	w    *world
	root string // what its units and logs are in
	pid  string // outside
}

// bootScript makes systemd's world in new namespaces: its units, the program and its configuration where the unit expects
// them, and the story's part of the control groups. Nothing of it is seen outside.
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

// boots starts a systemd that runs a unit of deployments/systemd as it stands. It needs what only root may do; where that is
// missing the story is left out, or fails with CI=true.
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
		"sysinit.target":  "[Unit]\nDefaultDependencies=no\n", // what units stand on by themselves
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
	// The shell puts itself into the story's control groups before it becomes unshare.
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
		_ = boot.Process.Kill() // and with it all that runs in there
		_ = boot.Wait()
		dismiss()
		for _, group := range groups {
			w.comesTrue(10*time.Second, func() bool { removeGroups(group); _, err := os.Stat(group); return os.IsNotExist(err) })
		}
	})
	w.eventually(10*time.Second, "systemd is there", func() bool {
		children, err := os.ReadFile("/proc/" + strconv.Itoa(boot.Process.Pid) + "/task/" + strconv.Itoa(boot.Process.Pid) + "/children")
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

// controlGroups makes the groups that systemd works in.
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

// removeGroups removes a group and those in it, which must be empty.
func removeGroups(group string) {
	entries, _ := os.ReadDir(group) // it may be gone
	for _, entry := range entries {
		if entry.IsDir() {
			removeGroups(filepath.Join(group, entry.Name()))
		}
	}
	_ = os.Remove(group)
}

// systemctl asks the story's systemd.
func (m *manager) systemctl(args ...string) (string, error) {
	m.w.t.Helper()
	ctx, cancel := context.WithTimeout(m.w.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, testenv.Tool(m.w.t, "nsenter"), append([]string{"--target", m.pid, "--mount", "--pid", "--cgroup", "systemctl"}, args...)...)
	said, err := command.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}

// shows is a property of a unit.
func (m *manager) shows(unit, property string) string {
	m.w.t.Helper()
	said, err := m.systemctl("show", "--value", "--property", property, unit)
	if err != nil {
		m.w.t.Fatalf("systemctl show %s: %v %s", property, err, said)
	}
	return said
}

// A systemd runs the unit as it is, in the sandbox that the unit configures. A gateway that is killed starts again, and one that
// is stopped ends in good order.
func TestUnderSystemd(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const unit = "intumwa.service"
	// Its stores listen on addresses: the unit has a /tmp of its own, in which no socket of theirs is.
	w := play(t, scene{standby: true, carriers: []carrier{steady()}, dark: true})
	program := release.get(t) // the race detector maps memory that the sandbox does not allow
	w.migrates(program)       // which the unit leaves to the upgrade
	m := w.boots(unit, program, w.gateway.config)
	defer func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(w.dir, "systemd.log"))
			said, _ := m.systemctl("status", "--no-pager", "-l", unit)
			t.Logf("systemd:\n%s\n%s", log[max(0, len(log)-3000):], said)
		}
	}()
	w.eventually(readyWithin, "the unit is ready", w.gateway.isReady)
	w.bound()
	shop := w.company("Isoko", 1_000_000)
	w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
	does := func(args ...string) {
		t.Helper()
		if said, err := m.systemctl(args...); err != nil {
			t.Fatalf("systemctl %v: %v %s", args, err, said)
		}
	}
	does("kill", "--signal=KILL", "--kill-who=main", unit)
	w.eventually(readyWithin, "it was started again", func() bool { return m.shows(unit, "NRestarts") == "1" && w.gateway.isReady() })
	w.becomes(shop.sends(w.number(), "Amahoro twese").ID, "sent")
	does("stop", "intumwa*") // as the manual has it
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
