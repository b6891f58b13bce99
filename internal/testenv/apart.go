package testenv

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// apartVariable is set in a process that Apart has started.
const apartVariable = "INTUMWA_TEST_APART"

// Apart has a test run in a process of its own with a network of its own, in which
// NewNetwork can make hosts and nobody else's addresses are in the way:
//
//	if !testenv.Apart(t) {
//		return // it was played there
//	}
//
// It returns true in that process, which has the variables of env besides, and false in
// this one when the other has ended; what that said is in this one's log, and its failure
// is this one's. The network ends with the process, and the process with this one, however
// that ends.
//
// No rights are needed where the kernel lets anybody make user namespaces, and root's do
// otherwise. Where neither is so (most containers) the test is left out as [Lacks] says:
// with CI=true it fails.
func Apart(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(apartVariable) == t.Name() {
		go endWithParent()
		return true
	}
	unshare := append([]string{Tool(t, "unshare")}, "--net", "--uts")
	if os.Geteuid() != 0 {
		unshare = append(unshare, "--user", "--map-current-user", "--keep-caps")
	}
	ip := Tool(t, "ip")
	if out, err := exec.Command(unshare[0], append(unshare[1:], "--", ip, "rule", "add", "from", "192.0.2.1", "to", "192.0.2.2", "blackhole")...).CombinedOutput(); err != nil {
		Lacks(t, fmt.Sprintf("this machine lets nobody make a network of his own, so no partition of one can be played: %s: %v %s", strings.Join(unshare, " "), err, bytes.TrimSpace(out)))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := append(unshare[1:], "--", self, "-test.run=^"+t.Name()+"$", "-test.v")
	if end, limited := t.Deadline(); limited {
		command = append(command, "-test.timeout="+max(time.Until(end)-5*time.Second, time.Second).String())
	} else {
		command = append(command, "-test.timeout=0")
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.artifacts" || f.Name == "test.outputdir" {
			command = append(command, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd := exec.Command(unshare[0], command...)
	cmd.Env = append(append(os.Environ(), env...), apartVariable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C must not end it before it has tidied up
	alive, err := cmd.StdinPipe()                         // closed by the kernel when this process ends
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting a process with a network of its own: %v", err)
	}
	err = cmd.Wait()
	_ = alive.Close()
	switch text := said.String(); {
	case err != nil:
		t.Errorf("%v\n%s", err, text)
	case strings.Contains(text, "--- SKIP: "+t.Name()):
		Lacks(t, text)
	default:
		t.Log(text)
	}
	return false
}

// endWithParent ends this process when the one that started it is gone. What it has started
// has watchers of its own.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}
